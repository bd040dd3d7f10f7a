# enter NAME prints the beginning of a command: what comes after it is run in the container of this name of the kubelet's that runs. It fails
# if there is none.
enter() {
	for id in $(crictl ps --quiet --state running --label "io.kubernetes.container.name=$1" 2>/dev/null); do
		echo "crictl exec --sync $id"
		return
	done
	echo "no container of $1 runs in CRI-O" >&2
	return 1
}

# enter NAME prints the beginning of a command: what comes after it is run in the container of this name of the kubelet's that runs. It fails
# if there is none.
enter() {
	for id in $(ctr --namespace k8s.io tasks list -q 2>/dev/null); do
		ctr --namespace k8s.io containers info "$id" 2>/dev/null | grep -q "\"io.kubernetes.container.name\": \"$1\"" || continue
		echo "ctr --namespace k8s.io tasks exec --exec-id kubexm-$$ $id"
		return
	done
	echo "no container of $1 runs in containerd" >&2
	return 1
}

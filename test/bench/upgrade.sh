# A Node's host gets the programs of another version of Kubernetes where it is, by what an administrator has: OpenSSH, tar and
# kubectl. $1 is the host, the rest are its units in the order in which they are restarted. ARTIFACTS has bin/ with the programs,
# VERSION is theirs, KUBECTL is a program for this machine, and DIR has ssh_config. For how long the cluster was waited for is
# written to WAITED, in nanoseconds.
set -eu
host=$1
shift

# One connection serves all commands to the host.
remote() {
	ssh -F "$DIR/ssh_config" -o ControlMaster=auto -o ControlPath="$DIR/ssh-%C" -o ControlPersist=10 "$host" "$@"
}

waited=0
waits() {
	from=$(date +%s%N)
	"$@"
	waited=$((waited + $(date +%s%N) - from))
}

ready() {
	tries=360
	until "$KUBECTL" --request-timeout=5s get --raw /readyz >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ]
		sleep 0.5
	done
}

waits "$KUBECTL" drain "$host" --ignore-daemonsets --delete-emptydir-data --timeout=15m
tar -C "$ARTIFACTS" --dereference -cf - bin | remote 'sudo tar -C /usr/local --no-same-owner -xf -'
for unit; do
	remote sudo systemctl restart "$unit"
	[ "$unit" != kube-apiserver ] || waits ready
done
remote -O exit 2>/dev/null || true
waits "$KUBECTL" wait --for="jsonpath={.status.nodeInfo.kubeletVersion}=$VERSION" "node/$host" --timeout=5m
waits "$KUBECTL" wait --for=condition=Ready "node/$host" --timeout=5m
"$KUBECTL" uncordon "$host"
echo "$waited" >"$WAITED"

# Stops and removes every task and container of the kubelet's. Runs on a reset, after the kubelet has stopped and before
# containerd is.
# A host that was adopted may have the client elsewhere.
ctr=/usr/local/bin/ctr
[ -x "$ctr" ] || ctr=$(command -v ctr)
[ -x "$ctr" ] && [ -S /run/containerd/containerd.sock ] || exit 0
for id in $($ctr -n k8s.io tasks list -q); do $ctr -n k8s.io tasks kill -s KILL "$id" 2>/dev/null & done
wait
for id in $($ctr -n k8s.io tasks list -q); do $ctr -n k8s.io tasks delete -f "$id" >/dev/null 2>&1 & done
wait
# Sandboxes that a half-made pod left have shims that nobody lists; they end with their last process.
# Those of other namespaces are others' (Docker's is moby).
for pid in $(pidof containerd-shim-runc-v2); do
	tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q -- ' -namespace k8s.io ' && kill -KILL "$pid" 2>/dev/null
done
exit 0

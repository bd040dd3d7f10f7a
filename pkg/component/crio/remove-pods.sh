# Ends and removes every container of CRI-O's, by its own state and not by its API, which wants the pods' network. Runs on a reset,
# after the kubelet has stopped and before CRI-O is.
runc=/usr/local/bin/runc state=/run/crio/runc
if [ -x "$runc" ]; then
	for dir in "$state"/*/; do
		[ -d "$dir" ] || continue
		id=${dir%/} id=${id##*/}
		$runc --root "$state" delete --force "$id" >/dev/null 2>&1 &
	done
	wait
fi
# Each container, and each command in one, has a conmon, which ends with it, unless it waits for one that never began. Those of
# others, such as Podman's, have another directory for sockets.
for pid in $(pidof conmon); do
	tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q -- ' --socket-dir-path /run/crio ' && kill -KILL "$pid" 2>/dev/null
done
exit 0

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the scripts of a restore begin with, after cluster.sh and run.sh. The environment says, besides:
#   restore         the directory of what is of a restore that is under way: it goes with its end
#   id              which restore: another one begins anew with what is there
#   snapshot        the file of the snapshot, and sum its sha256
#   initial         all members, as name=peer URL with commas
#   token           that of the restored cluster
#   bump            by how much its revision is more than the snapshot's
# In $restore lie:
#   under-way       the restore's ID, from before anything ends until all is well: what makes the host what it must be does nothing then
#   aside           what was there before is set aside
#   resumed         the API server of this host runs again
#   restored        the data is the snapshot's, and etcd may be started
#   etcd.yaml       the manifest of etcd's pod, while it must not run

# Begin, or go on with, this restore. Of another one that did not end, what it has done to the data is what is there now.
begin_restore() {
	mkdir -p -m 0700 "$restore" || fail "$restore cannot be made"
	[ "$(cat "$restore/under-way" 2>/dev/null)" != "$id" ] || return 0
	rm -f "$restore/aside" "$restore/restored" "$restore/resumed"
	printf '%s\n' "$id" >"$restore/.under-way" && sync "$restore/.under-way" && mv "$restore/.under-way" "$restore/under-way" ||
		fail "$restore cannot be written"
}

mark() { : >"$restore/$1" && sync "$restore/$1" || fail "$restore/$1 cannot be written"; }

# Whether nothing listens for clients on this host.
is_silent() { ! is_heard; }

# End this host's etcd. The manifest of a pod is kept, since nobody else may have it.
stop_for_restore() {
	if [ "$form" = unit ]; then
		timeout 100 systemctl stop etcd.service || fail "etcd cannot be stopped"
		await 10 is_silent || fail "etcd's unit was stopped on $name, and something listens on port 2379 still"
		return
	fi
	if [ -e "$manifest" ]; then
		cp -p "$manifest" "$restore/.etcd.yaml" && sync "$restore/.etcd.yaml" && mv "$restore/.etcd.yaml" "$restore/etcd.yaml" && rm -f "$manifest" ||
			fail "$manifest cannot be moved to $restore"
	fi
	[ -e "$restore/etcd.yaml" ] || fail "etcd has no manifest on $name, neither in $manifest nor in $restore: bring the host up first"
	await 100 is_silent || fail "the kubelet does not end the etcd pod whose manifest was removed: is the kubelet well?"
}

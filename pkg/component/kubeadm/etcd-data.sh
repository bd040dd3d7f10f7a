# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the directory of etcd's write-ahead log, and the link $begun to it by which etcd's pod knows that its data is there: the
# manifest tells etcd for ever how it began, and would have it begin anew, or take part without what it has promised, wherever its
# data is gone. Where the link leads nowhere the kubelet does not start the pod, and containerd does not start its container (a
# path that is missing it would make, which it cannot where a link is). The link is made last: where it is and leads nowhere, there
# was data. It may be cut at any line and run again. Its environment says:
#   name            this Node's name
#   data begun      etcd's data directory, and the link
#   token patch     what the cluster's token begins with where this host begins the cluster, or nothing; and the file by which
#                   kubeadm is given it
#   restoring       a path that exists while a restore is under way

fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

[ ! -e "$restoring" ] || fail "etcd on $name is being restored ($restoring): finish that first, by the same kubexm etcd restore"
wal=$data/member/wal
if [ -L "$begun" ] && [ ! -d "$begun" ]; then
	fail "etcd on $name has begun before and finds no data: its write-ahead log should be in $wal. Nothing is begun in its place." \
		"Bring the data back to $data (is a file system not mounted?), or restore a snapshot to there: then etcd starts by itself." \
		"If the data is lost, reset the host or replace its Machine"
fi
umask 077
mkdir -p "$wal" && chown --reference="$data" "$data/member" "$wal" || fail "$wal cannot be made"
# Another token each time, so that no two clusters have the same IDs.
if [ -n "$token" ] && [ ! -e "$patch" ]; then
	token=$token-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
	printf -- '- {op: add, path: /spec/containers/0/command/-, value: "--initial-cluster-token=%s"}\n' "$token" >"$patch.part" &&
		mv "$patch.part" "$patch" || fail "$patch cannot be written"
fi
ln -sfn "$wal" "$begun" || fail "$begun cannot be made"

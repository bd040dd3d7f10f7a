# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the directory of etcd's write-ahead log, and the link $begun to it by which etcd's pod knows that its data is there: the
# manifest tells etcd for ever how it began, and would have it begin anew, or take part without what it has promised, wherever its
# data is gone. Where the link leads nowhere the kubelet does not start the pod, and containerd does not start its container (a
# path that is missing it would make, which it cannot where a link is). The link is made last: where it is and leads nowhere, there
# was data. It may be cut at any line and run again. Its environment says:
#   name            this Node's name
#   others          the other hosts that are to have a member, as name=address, where this host begins the cluster
#   data begun      etcd's data directory, and the link
#   token patch     what the cluster's token begins with where this host begins the cluster, or nothing; and the file by which
#                   kubeadm is given it

fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

wal=$data/member/wal
if [ -L "$begun" ] && [ ! -d "$begun" ]; then
	fail "etcd on $name has begun before and finds no data: its write-ahead log should be in $wal. Nothing is begun in its place." \
		"Bring the data back to $data (is a file system not mounted?), or restore a snapshot to there: then etcd starts by itself." \
		"If the data is lost, reset the host or replace its Machine"
fi
has_data() {
	for file in "$wal"/*.wal; do [ ! -e "$file" ] || return 0; done
	return 1
}

# The other hosts on which something listens for etcd's clients. All are asked at once, and no more than that: this host has no certificate
# yet to ask etcd with.
listening() {
	for other in $others; do
		{
			! timeout 3 bash -c ': </dev/tcp/"$1"/2379' bash "${other#*=}" 2>/dev/null || echo "${other%%=*} (${other#*=})"
		} &
	done
	wait
}

# A second cluster beside one that exists would be the end of that one.
if [ ! -L "$begun" ] && ! has_data; then
	there=$(listening | sort | paste -s -d , - | sed 's/,/, /g')
	[ -z "$there" ] || fail "an etcd cluster exists: etcd listens on port 2379 of $there. $name was to begin one, and has no data in $data:" \
		"let it join as a later member instead. Take it out of the cluster's hosts, or delete its Machine, and add it again." \
		"If all is to begin anew, reset the other hosts first"
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

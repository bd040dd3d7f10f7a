# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Waits until this host's member is in the restored cluster with quorum, and remembers which member of which cluster it is now. It comes
# after restore.sh.

await 180 answers "$own" || fail "etcd was started on $name with the restored data, and does not answer with quorum at $own. $(last_words)"
now=$(identity "$own") && [ -n "$now" ] || fail "etcd on $name does not say which member it is at $own"
there=$(list "$own") || fail "the members cannot be listed at $own"
have=$(printf '%s\n' "$there" | awk '{ print $4 }' | sort | paste -s -d ' ' -)
want=$(printf '%s\n' "$initial" | tr ',' '\n' | cut -d = -f 2 | sort | paste -s -d ' ' -)
[ "$have" = "$want" ] || fail "the members of etcd are at $have, and should be at $want: it is another cluster than the restored one"
# kubeadm's own etcd has no such record.
if [ -e "$record" ]; then
	printf 'member %s\n' "$now" >"$dir/.member" && sync "$dir/.member" && mv "$dir/.member" "$record" || fail "$record cannot be written"
fi

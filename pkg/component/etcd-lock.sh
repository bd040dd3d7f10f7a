# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# The lock by which members of etcd are away one at a time, whoever restarts, removes or defragments them. It comes after the text of fail, and
# its environment says with which certificates etcdctl asks (ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY).

# Whether a voting member is at the endpoint and has quorum. (Not "endpoint health": an alarm is no illness here.)
answers() { timeout 6 etcdctl --endpoints="$1" --dial-timeout=2s --command-timeout=4s get kubexm >/dev/null 2>&1; }

# Run the script $3 while nobody else in the cluster restarts, removes or defragments a member, waiting for it and with it at
# most $1 seconds; $2 are the endpoints that keep the lock. It goes with the one who holds it, however that one ends.
hold() (
	export lockers="$2"
	error=$(timeout "$1" etcdctl --endpoints="$2" --dial-timeout=5s lock --ttl=20 kubexm/etcd -- /bin/sh -uc "$3" etcd 2>&1) && exit
	code=$?
	[ "$code" -ne 124 ] || fail "others in the cluster restart, remove or defragment members for $1 s already"
	printf '%s\n' "$error" | grep -v -e '^{' -e '^Error: exit status' >&2
	exit "$code"
)

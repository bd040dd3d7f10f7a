# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the script in $renewal while nobody else in the cluster restarts a part of its control plane: by the lock that also those
# hold who restart members of etcd. Without an etcd that answers here (its certificate may have ended) there is nobody to ask.

own=https://$host:2379
export ETCDCTL_CACERT="$ssl/ca.pem" ETCDCTL_CERT="$ssl/admin-$name.pem" ETCDCTL_KEY="$ssl/admin-$name-key.pem"
if ! [ -e "$ETCDCTL_CERT" ] ||
	! timeout 6 etcdctl --endpoints="$own" --dial-timeout=2s --command-timeout=4s get kubexm >/dev/null 2>&1; then
	exec /bin/sh -uc "$renewal" kubeadm
fi
# By all members, so that the lock outlives a restart of this host's.
members=$(timeout 6 etcdctl --endpoints="$own" --dial-timeout=2s --command-timeout=4s member list 2>/dev/null |
	awk -F ', ' '$2 == "started" && $5 != "" { printf "%s%s", sep, $5; sep = "," }') || members=
error=$(timeout "$limit" etcdctl --endpoints="${members:-$own}" --dial-timeout=5s lock --ttl=20 kubexm/etcd -- \
	/bin/sh -uc "$renewal" kubeadm 2>&1) && exit
code=$?
[ "$code" -ne 124 ] || error="others in the cluster restart parts of it, and this took more than $limit s with them"
printf '%s\n' "$error" | grep -v -e '^{' -e '^Error: exit status' -e '^kubexm/etcd/' >&2
exit "$code"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the script in $renewal while nobody else in the cluster restarts a part of its control plane: by the lock that also those
# hold who restart members of etcd, where such a member is here and answers; else by a Lease. It comes after the texts of ready.sh
# and turn.sh. Its environment says, besides:
#   before          a script that disrupts nothing and is run first, whoever has the turn; or nothing
#   disrupts        a script that fails when there is nothing that disrupts; or nothing
#   ssl             what this host goes to its member of etcd with, if it has one
#   limit wait      seconds for all of it, of which the turn by Lease may take half to come, and to wait until anybody can be asked for it

own=https://$host:2379
export ETCDCTL_CACERT="$ssl/ca.pem" ETCDCTL_CERT="$ssl/admin-$name.pem" ETCDCTL_KEY="$ssl/admin-$name-key.pem"
export by= lockers=

# By what the turn can be had: etcd's answer counts for more than the API server's, which may only be slow to see that etcd is gone.
is_asked() {
	if [ -e "$ETCDCTL_CERT" ] && timeout 6 etcdctl --endpoints="$own" --dial-timeout=2s --command-timeout=4s get kubexm >/dev/null 2>&1; then
		by=lock
	elif [ -e "$admin" ] && ask_any get --raw /readyz >/dev/null </dev/null; then
		by=lease
	else
		return 1
	fi
}

[ -z "$before" ] || /bin/sh -uc "$before" kubeadm || exit
[ -z "$disrupts" ] || /bin/sh -uc "$disrupts" kubeadm || exit 0
await "$wait" is_asked || :
case $by in
lock)
	# By all members, so that the lock outlives a restart of this host's.
	lockers=$(timeout 6 etcdctl --endpoints="$own" --dial-timeout=2s --command-timeout=4s member list 2>/dev/null |
		awk -F ', ' '$2 == "started" && $5 != "" { printf "%s%s", sep, $5; sep = "," }') || lockers=
	lockers=${lockers:-$own}
	error=$(timeout "$limit" etcdctl --endpoints="$lockers" --dial-timeout=5s lock --ttl=20 kubexm/etcd -- \
		/bin/sh -uc "$renewal" kubeadm 2>&1) && exit
	code=$?
	[ "$code" -ne 124 ] || error="others in the cluster restart parts of it, and this took more than $limit s with them"
	printf '%s\n' "$error" | grep -v -e '^{' -e '^Error: exit status' -e '^kubexm/etcd/' >&2
	exit "$code"
	;;
lease)
	await $((limit / 2)) have_turn ||
		fail "this host's turn does not come: another host changes its control plane since $((limit / 2)) s: $holder"
	trap 'await 20 is_given_back' EXIT
	;;
*)
	# The API server here answers to this host's kubelet, and nobody can be asked for the turn.
	! api /readyz >/dev/null || fail "$admin is not there or not accepted, and without it $name cannot take its turn to restart a part of" \
		"its control plane: bring it back, if only for this"
	# No API server of the cluster answers from here, and no etcd: what is restarted here serves nobody.
	;;
esac
/bin/sh -uc "$renewal" kubeadm

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Lets one control plane host of the cluster at a time do what disrupts, by a Lease. It comes after functions fail and await. The
# environment says:
#   name            this host's Node's name
#   admin server    the file by which to talk to API servers, and the URL of this host's own
#   term asking     seconds that a turn lasts after its holder was heard of, and for which whoever keeps it is asked
# and by tells by what the turn is had: lease; lock, which is etcd's at the endpoints $lockers; or nothing, if nobody is there to ask.

# By their paths, kubectl asks for nothing else, and keeps nothing under the home directory.
leases=/apis/coordination.k8s.io/v1/namespaces/kube-system/leases
lease=kubexm-control-plane
seen= since=0 holder=

ask() { kubectl --kubeconfig "$admin" --server "$server" --request-timeout 5s "$@" 2>/dev/null; }
api_is_ready() { ask get --raw /readyz >/dev/null </dev/null; }

# At this host's API server if that is ready, else at the cluster's endpoint, where another may answer.
ask_any() {
	if api_is_ready; then ask "$@"; else kubectl --kubeconfig "$admin" --request-timeout 5s "$@" 2>/dev/null; fi
}

# The turn as an object: whoever creates it has it.
turn() {
	now=$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)
	printf '{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": {"name": "%s", "namespace": "kube-system", "resourceVersion": "%s"},
		"spec": {"holderIdentity": "%s", "leaseDurationSeconds": %s, "acquireTime": "%s", "renewTime": "%s"}}' \
		"$lease" "$1" "$name" "$term" "$now" "$now"
}

# Whose turn it is, and of which version the object is.
whose() {
	found=$(ask_any get --raw "$leases/$lease" | tr '{},' '\n\n\n') || return
	version=$(printf '%s\n' "$found" | sed -n 's/^"resourceVersion":"\(.*\)"$/\1/p')
	holder=$(printf '%s\n' "$found" | sed -n 's/^"holderIdentity":"\(.*\)"$/\1/p')
	[ -n "$version" ]
}

# Make the turn last for another term.
prolong() { turn "$version" | ask_any replace --raw "$leases/$lease" -f - >/dev/null; }

# Whether the turn is ours. One that is not given back in time ends: by our clock, as others' may differ.
have_turn() {
	turn '' | ask_any create --raw "$leases" -f - >/dev/null && return
	whose || return
	if [ "$version" != "$seen" ]; then seen=$version since=$(date +%s); fi
	[ "$holder" = "$name" ] || [ $(($(date +%s) - since)) -ge "$term" ] || return
	prolong
}

# Whether the turn is ours still. It is asked for right before what disrupts: nothing ends a script whose turn has ended.
is_my_turn() {
	case $by in
	lease) whose && [ "$holder" = "$name" ] && prolong ;;
	lock)
		timeout 10 etcdctl --endpoints="$lockers" --dial-timeout=3s --command-timeout=7s get "$ETCD_LOCK_KEY" --keys-only 2>/dev/null |
			grep -q .
		;;
	esac
}

keep_turn() { await "$asking" is_my_turn || fail "$name's turn to restart a part of its control plane has ended meanwhile: nothing more is restarted"; }

is_given_back() {
	whose || return
	[ "$holder" != "$name" ] || ask_any delete --raw "$leases/$lease" >/dev/null
}

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Brings the units of the control plane's components on this host to what they must be: the API server's, then those of who
# uses it. One host of the cluster does so at a time, while its API server answers. When a component does not come up, the units
# are put back. It may be cut at any line and run again: what was there before lies in $kept until all is well. Each argument is
# a component, the environment has its unit by the name of the component with _ for -. It says, besides:
#   name            this Node's name
#   admin server    the file by which to talk to this host's API server, and its URL
#   units kept      the directories of units, and of those that were there before
#   patience term   seconds that the API server may take, and that a turn lasts when its holder is gone
#   limit           seconds to wait for a turn
#   upgrading       a path that exists while programs are replaced: others see to it then that one host at a time is changed

# By their paths, kubectl asks for nothing else, and keeps nothing under the home directory.
leases=/apis/coordination.k8s.io/v1/namespaces/kube-system/leases
lease=kubexm-control-plane

fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

await() {
	until=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt "$until" ] || return 1
		sleep 0.5
	done
}

ask() { kubectl --kubeconfig "$admin" --server "$server" --request-timeout 5s "$@" 2>/dev/null; }
is_ready() { ask get --raw /readyz >/dev/null; }

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
	found=$(ask get --raw "$leases/$lease" | tr '{},' '\n\n\n') || return
	version=$(printf '%s\n' "$found" | sed -n 's/^"resourceVersion":"\(.*\)"$/\1/p')
	holder=$(printf '%s\n' "$found" | sed -n 's/^"holderIdentity":"\(.*\)"$/\1/p')
	[ -n "$version" ]
}

# Whether the turn is ours. One that is not given back in time ends: by our clock, as others' may differ.
have_turn() {
	turn '' | ask create --raw "$leases" -f - >/dev/null && return
	whose || return
	if [ "$version" != "$seen" ]; then seen=$version since=$(date +%s); fi
	[ "$holder" = "$name" ] || [ $(($(date +%s) - since)) -ge "$term" ] || return
	turn "$version" | ask replace --raw "$leases/$lease" -f - >/dev/null
}

is_given_back() {
	whose || return
	[ "$holder" != "$name" ] || ask delete --raw "$leases/$lease" >/dev/null
}

wanted() { eval "printf '%s' \"\$$(echo "$1" | tr - _)\""; }
restarts() { systemctl show -p NRestarts --value "$1.service"; }

# Whether the API server is ready, or is seen not to become so: it has ended three times.
settled() { is_ready || [ "$(restarts kube-apiserver)" -ge 3 ]; }

# Whether the component runs with the unit that it has now. Those that use the API server end at once when they do not understand
# what they are told.
comes_up() {
	systemctl restart "$1.service" || return
	if [ "$1" = kube-apiserver ]; then
		await "$patience" settled
		is_ready
	else
		sleep 2
		systemctl is-active --quiet "$1.service" && [ "$(restarts "$1")" = 0 ]
	fi
}

put_back() {
	for component in "$@"; do
		[ ! -e "$kept/$component" ] || mv "$kept/$component" "$units/$component.service" || return
	done
	systemctl daemon-reload
	for component in $changed; do systemctl restart "$component.service"; done
	! is_up || await "$patience" is_ready
	rmdir "$kept"
}

is_up() { systemctl is-active --quiet kube-apiserver.service; }

[ ! -e "$upgrading" ] || exit 0
seen= holder=
if is_up && is_ready; then
	await "$limit" have_turn || fail "this host's turn does not come: another host changes its control plane since $limit s: $holder"
	trap 'await 20 is_given_back' EXIT
fi
umask 077
mkdir -p "$kept" || fail "$kept cannot be made"
changed=
for component in "$@"; do
	file=$units/$component.service
	[ -e "$file" ] || continue
	if [ ! -e "$kept/$component" ]; then
		[ "$(wanted "$component" | sha256sum)" != "$(sha256sum <"$file")" ] || continue
		cp -p "$file" "$kept/.$component" && mv "$kept/.$component" "$kept/$component" || fail "$kept cannot be written"
	fi
	wanted "$component" >"$kept/.new" && chmod 0600 "$kept/.new" && cp -p "$kept/.new" "$file.new" && mv "$file.new" "$file" ||
		fail "$file cannot be written"
	rm -f "$kept/.new"
	systemctl daemon-reload
	# One that does not run is started by its own step.
	systemctl is-active --quiet "$component.service" || continue
	changed="$changed $component"
	comes_up "$component" && continue
	# Its own words, if it had any: of what ends at once and is started again, systemd says more than it does.
	said=$(journalctl -q "_SYSTEMD_UNIT=$component.service" -n 3 -o cat --no-pager | cut -c 1-300)
	said=${said:-$(journalctl -u "$component" -n 3 -o cat --no-pager | cut -c 1-300)}
	put_back "$@"
	fail "$component does not come up with what it is to be told now, so what was there before was put back; the last that it said: $said"
done
rm -rf "$kept"

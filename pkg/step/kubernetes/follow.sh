# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Brings the units of the control plane's components on this host to what they must be: the API server's, then those of who
# uses it. One host of the cluster does so at a time, while its API server answers. When a component does not come up, the units
# are put back. It may be cut at any line and run again: what was there before lies in $kept until all is well. Each argument is
# a component, the environment has its unit by the name of the component with _ for -. Before it come those of turn.sh, whose
# environment it has. That says, besides:
#   units kept      the directories of units, and of those that were there before
#   patience        seconds that the API server may take
#   limit           seconds to wait for a turn
#   upgrading       a path that exists while programs are replaced: others see to it then that one host at a time is changed

wanted() { eval "printf '%s' \"\$$(echo "$1" | tr - _)\""; }
restarts() { systemctl show -p NRestarts --value "$1.service"; }

# Whether the API server is ready, or is seen not to become so: it has ended three times.
settled() { api_is_ready || [ "$(restarts kube-apiserver)" -ge 3 ]; }

# Whether the component runs with the unit that it has now. Those that use the API server end at once when they do not understand
# what they are told.
comes_up() {
	systemctl restart "$1.service" || return
	if [ "$1" = kube-apiserver ]; then
		await "$patience" settled
		api_is_ready
	else
		sleep 2
		systemctl is-active --quiet "$1.service" && [ "$(restarts "$1")" = 0 ]
	fi
}

put_back() {
	is_my_turn || : # it lasts long enough where nobody can be told
	for component in "$@"; do
		[ ! -e "$kept/$component" ] || mv "$kept/$component" "$units/$component.service" || return
	done
	systemctl daemon-reload
	for component in $changed; do systemctl restart "$component.service"; done
	! is_up || await "$patience" api_is_ready
	rmdir "$kept"
}

is_up() { systemctl is-active --quiet kube-apiserver.service; }

[ ! -e "$upgrading" ] || exit 0
by=
if is_up && api_is_ready; then
	await "$limit" have_turn || fail "this host's turn does not come: another host changes its control plane since $limit s: $holder"
	by=lease
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
	keep_turn
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

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# firewalld learns of new files by a reload, which keeps connections, and drops what was set at runtime alone.

# Zones, policies and direct rules: those of runtime, or with --permanent those of a reload. Ours do not count. Interfaces that
# NetworkManager has put into zones it puts there again.
settings() {
	{
		firewall-cmd "$@" --list-all-zones
		firewall-cmd "$@" --list-all-policies | awk 'BEGIN { RS = ""; ORS = "\n\n" } !/^kubexm/'
		firewall-cmd "$@" --direct --get-all-chains
		firewall-cmd "$@" --direct --get-all-rules
		firewall-cmd "$@" --direct --get-all-passthroughs
	} | sed 's/^\([^ ].*\) ([a-z, ]*)$/\1/' | if systemctl is-active --quiet NetworkManager.service; then grep -v '^  interfaces:'; else cat; fi
}

# Does a reload lose nothing?
same() {
	permanent=$(settings --permanent)
	runtime=$(settings)
	[ "$runtime" = "$permanent" ]
}

# May firewalld be reloaded?
may_reload() {
	firewall-cmd --check-config >&2 || exit 1
	same && return
	echo "firewalld has settings at runtime that are not permanent, and a reload would drop them:" >&2
	printf '%s\n' "$runtime" | grep -vxF -e "$permanent" | head -n 10 >&2
	echo "keep them by firewall-cmd --runtime-to-permanent, or drop them by firewall-cmd --reload; or open the ports yourself and set" \
		"system.firewall: Keep" >&2
	exit 1
}

# Nothing of ours is at runtime any more, whose files are gone: where a reload would lose what is others', our policies stay until the
# next one, empty.
forget() {
	command -v firewall-cmd >/dev/null && systemctl is-active --quiet firewalld.service || return 0
	if same; then
		firewall-cmd --reload
		return
	fi
	for policy in $(firewall-cmd --get-policies); do
		case $policy in kubexm | kubexm-pods) ;; *) continue ;; esac
		[ ! -e "/etc/firewalld/policies/$policy.xml" ] || continue
		firewall-cmd --policy="$policy" --remove-service=kubexm
		firewall-cmd --policy="$policy" --list-rich-rules | while read -r rule; do
			[ -z "$rule" ] || firewall-cmd --policy="$policy" --remove-rich-rule="$rule" </dev/null || exit 1
		done || return 1
	done
}

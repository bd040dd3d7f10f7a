# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# ufw's rules are ours where their comment says so. $1 is the comment; the rest are the rules, each as "ufw show added" prints it.

# Ours, of what ufw has (in $all): those with the comment $1, or with any of ours.
look() { all=$(ufw show added); }
with() { printf '%s\n' "$all" | sed -n "s/^ufw \(.*\) comment '$1'\$/\1/p" | sort; }
any='made by kubexm[ 0-9a-f]*'
sorted() { printf '%s\n' "$@" | sort; }

is_so() {
	comment=$1
	shift
	look || exit 75 # which does not tell
	have=$(with "$any")
	[ "$have" = "$(sorted "$@")" ] && [ "$(with "$comment")" = "$have" ] && return
	echo "ufw has other rules of ours: ${have:-none}" | tr '\n' ';'
	exit 1
}

# Delete those of ours that are not among "$@".
delete() {
	look || exit 1
	set -f
	with "$any" | while read -r rule; do
		sorted "$@" | grep -qxF -e "$rule" && continue
		case $rule in
		'route '*) ufw route delete ${rule#route } ;;
		*) ufw delete $rule ;;
		esac </dev/null || exit 1
	done
}

# New rules come after all others, so one of the host's own that refuses counts more. A rule by a profile has the ports that the
# profile had, until it is updated.
make_so() {
	comment=$1
	shift
	ufw app update kubexm || exit 1
	delete "$@" || exit 1
	set -f
	for rule in "$@"; do
		ufw $rule comment "$comment" || exit 1
	done
}

forget() { ! command -v ufw >/dev/null || delete; }

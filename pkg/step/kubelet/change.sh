# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the scripts that change files of the kubelet begin with. When the kubelet does not become healthy with what is new, the
# files are put back and it runs with those. What was there before lies in $kept until all is well, so that a script may be cut at
# any line and run again. The environment says:
#   kept       the directory of what was there before, which goes with the boot, as the kubelet does
#   health     the URL at which the kubelet says that it is healthy, or nothing where it has none
#   patience   seconds that it may take
#   upgrading  a path that exists while programs are replaced: all is undone together then when the kubelet does not run

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

property() { systemctl show -p "$1" --value kubelet.service; }

is_healthy() {
	systemctl is-active --quiet kubelet.service || return
	[ -n "$health" ] || return 0
	if command -v curl >/dev/null; then
		curl -fsS -m 3 -o /dev/null "$health" 2>/dev/null
	elif command -v wget >/dev/null; then
		wget -q -T 3 -t 1 -O /dev/null "$health"
	else
		port=${health##*:}
		[ -n "$(ss -Htln "sport = :${port%%/*}")" ]
	fi
}

# Whether it is healthy, or is seen not to become so: it has ended twice.
settled() { is_healthy || [ "$(property NRestarts)" -ge 2 ]; }

comes_up() {
	systemctl restart kubelet.service || return
	# One that cannot be asked must stay up: it ends at once when it does not understand what it is told.
	[ -n "$health" ] || sleep 2
	await "$patience" settled
	is_healthy && { [ -n "$health" ] || [ "$(property NRestarts)" = 0 ]; }
}

# The last that it said that is no mere information.
last_words() {
	said=$(journalctl -q -u kubelet.service -n 40 -o cat --no-pager | grep -E '^[EF][0-9]{4} |rror:|unknown flag' | tail -n 2 | cut -c 1-300)
	[ -n "$said" ] || said=$(journalctl -q -u kubelet.service -n 2 -o cat --no-pager | cut -c 1-300)
	printf '%s' "${said:-nothing}"
}

# Whether the kubelet was started since the boot: before that there is nothing to put back.
has_run() {
	case $(property ExecMainStartTimestampMonotonic 2>/dev/null) in '' | 0) return 1 ;; esac
}

changed=
# Put what is in the file $2 in the place of $1. A file that is what it must be stays as old as it is: by that one knows that the
# kubelet need not be restarted.
place() {
	! cmp -s "$2" "$1" || return 0
	as=${1##*/}
	if [ ! -e "$kept/$as" ] && [ ! -e "$kept/$as.absent" ]; then
		if [ -e "$1" ]; then
			cp -p "$1" "$kept/.$as" && mv "$kept/.$as" "$kept/$as"
		else
			: >"$kept/$as.absent"
		fi || fail "$kept cannot be written"
	fi
	cp "$2" "${1%/*}/.$as.kubexm" && chmod 0600 "${1%/*}/.$as.kubexm" && mv "${1%/*}/.$as.kubexm" "$1" || fail "$1 cannot be written"
	changed="$changed $1"
}

put_back() {
	for each in "$@"; do
		as=${each##*/}
		if [ -e "$kept/$as" ]; then
			cp -p "$kept/$as" "${each%/*}/.$as.kubexm" && mv "${each%/*}/.$as.kubexm" "$each" || return
		elif [ -e "$kept/$as.absent" ]; then
			rm -f "$each"
		fi
	done
	systemctl daemon-reload
	# It was restarted over and over again, and a restart by hand does not forget that: it would count as settled at once.
	systemctl reset-failed kubelet.service
	systemctl restart kubelet.service
	await "$patience" settled
	rm -rf "$kept"
}

# Begin to change files.
begin() { (umask 077 && mkdir -p "$kept") || fail "$kept cannot be made"; }

# Have the kubelet run with the files, which were all placed. A run that was cut may have placed some that were not seen to work.
end() {
	if [ -e "$upgrading" ] || ! has_run; then
		rm -rf "$kept"
		return
	fi
	if [ -n "$(ls "$kept")" ]; then
		systemctl daemon-reload
		comes_up || {
			said=$(last_words)
			put_back "$@"
			fail "the kubelet does not become healthy with its new configuration, so what was there before was put back; the last that it said: $said"
		}
	fi
	rm -rf "$kept"
}

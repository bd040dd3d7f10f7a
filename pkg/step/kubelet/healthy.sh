# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether the kubelet is healthy. Only looks.
#   $1  the URL at which it says so, or nothing where it has none
#   $2  a path that exists while its files are changed: one that has ended twice since is not going to be healthy with them
#   $3  the exit code that says so

is_healthy() {
	systemctl is-active --quiet kubelet.service || return
	[ -n "$1" ] || return 0
	if command -v curl >/dev/null; then
		curl -fsS -m 3 -o /dev/null "$1" 2>/dev/null
	elif command -v wget >/dev/null; then
		wget -q -T 3 -t 1 -O /dev/null "$1"
	else
		port=${1##*:}
		[ -n "$(ss -Htln "sport = :${port%%/*}")" ]
	fi
}

is_healthy "$1" && exit
# The last that it said that is no mere information.
said=$(journalctl -q -u kubelet.service -n 40 -o cat --no-pager | grep -E '^[EF][0-9]{4} |rror:|unknown flag' | tail -n 1 | cut -c 1-300)
[ -n "$said" ] || said=$(journalctl -q -u kubelet.service -n 1 -o cat --no-pager | cut -c 1-300)
echo "the kubelet is $(systemctl show -p ActiveState --value kubelet.service) and not healthy; the last that it said: ${said:-nothing}"
[ ! -e "$2" ] || [ "$(systemctl show -p NRestarts --value kubelet.service)" -lt 2 ] || exit "$3"
exit 1

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether the API server of this host is ready. Only looks. The arguments after these are the command that asks it.
#   $1  a path that exists while it is changed: one that has ended three times since is not going to be ready with what it was given
#   $2  the exit code that says so

change=$1 never=$2
shift 2
said=$("$@" 2>&1) && exit
# The last that it said itself, or systemd of it.
last=$(journalctl -q _SYSTEMD_UNIT=kube-apiserver.service -n 5 -o cat --no-pager | grep . | tail -n 2 | cut -c 1-300)
[ -n "$last" ] || last=$(journalctl -q -u kube-apiserver -n 1 -o cat --no-pager | cut -c 1-300)
echo "it says $(printf '%s' "${said:-nothing}" | tail -n 1 | cut -c 1-200); the last in its journal (journalctl -u kube-apiserver):" $last
[ ! -e "$change" ] || [ "$(systemctl show -p NRestarts --value kube-apiserver.service)" -lt 3 ] || exit "$never"
exit 1

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails where etcd's program $1, or the one that the unit $2 runs, is of a later minor version than $3, which is about to be placed.
# etcd ends at once with data of a later minor version than its own.

of() { "$1" --version 2>/dev/null | sed -n 's/^etcd Version: *//p' | head -n 1; }

# 3.6.14 as 3006.
minor() { printf '%s\n' "${1#v}" | awk -F . '{ print $1 * 1000 + $2 }'; }

# A program that was placed and never started has no data.
pid=$(systemctl show -p MainPID --value "$2" 2>/dev/null)
have=
case $pid in '' | 0) ;; *) have=$(of "/proc/$pid/exe") ;; esac
[ -n "$have" ] || have=$(of "$1")
[ -z "$have" ] || [ "$(minor "$have")" -le "$(minor "$3")" ] || {
	echo "etcd $have is here, and ${3#v} is to be installed: etcd does not start with data of a later minor version." \
		"Keep etcd: use a bundle that has etcd $have or later with the version of Kubernetes that is wanted." >&2
	exit 1
}

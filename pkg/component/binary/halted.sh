# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether nothing of the control plane runs on this host while it must not: a host that was booted since has started it. Only looks.

[ -e "$restore/halted" ] || exit 0
for unit in $units; do
	case $(systemctl is-active "$unit") in
	inactive | failed | unknown) ;;
	*)
		echo "$unit runs, and etcd is being restored"
		exit 1
		;;
	esac
done

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Ends this host's control plane, but etcd, until etcd is restored. The environment says which directory is of a restore that is under way
# ($restore), and which units there are, those first that others need ($units). It may be cut at any line and run again.

mkdir -p -m 0700 "$restore" && : >"$restore/halted" || {
	echo "$restore cannot be written" >&2
	exit 1
}
for unit in $units; do reversed="$unit ${reversed:-}"; done
for unit in $reversed; do
	timeout 100 systemctl stop "$unit" || {
		echo "$unit cannot be stopped" >&2
		exit 1
	}
done

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Starts this host's control plane with the restored etcd: anew, where it runs, because it remembers what etcd had before. It may be cut
# at any line and run again.

systemctl daemon-reload
systemctl reset-failed $units 2>/dev/null
for unit in $units; do
	systemctl restart "$unit" || {
		echo "$unit cannot be started: see journalctl -u $unit" >&2
		exit 1
	}
done
rm -f "$restore/halted"

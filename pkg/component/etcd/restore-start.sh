# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Starts this host's etcd with the restored data, and does not wait: it is in no cluster with quorum until others are started too. It
# comes after restore.sh.

[ -e "$restore/restored" ] || fail "the data of etcd on $name is not restored"
if [ "$form" = pod ]; then
	if [ ! -e "$manifest" ]; then
		cp -p "$restore/etcd.yaml" "$restore/.etcd.yaml" && mv "$restore/.etcd.yaml" "$manifest" || fail "$manifest cannot be restored"
	fi
else
	write_initial "$name=$peer" existing none
	start || fail "etcd cannot be started"
fi

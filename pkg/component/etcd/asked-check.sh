# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether this host's member was restarted since it was asked for, and answers. Only looks.

is_another_since || {
	echo "etcd began before that was asked for"
	exit 1
}
answers "$own" || {
	echo "no voting member answers here with quorum"
	exit 1
}

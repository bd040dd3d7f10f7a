# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Ends this host's etcd, and has nothing start it until its data is restored. It comes after restore.sh.

begin_restore
stop_for_restore

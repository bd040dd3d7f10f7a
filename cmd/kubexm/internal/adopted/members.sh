# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints etcd's members in JSON, asked in the static pod of this host by the pod's own etcdctl. Only looks. It comes after what the runtime's
# enter is.
PATH=$PATH:/usr/local/bin:/usr/bin
pki=/etc/kubernetes/pki/etcd
within=$(enter etcd) || exit
exec $within etcdctl --endpoints=https://127.0.0.1:2379 --cacert="$pki/ca.crt" --cert="$pki/server.crt" --key="$pki/server.key" \
	--dial-timeout=2s --command-timeout=4s -w json member list

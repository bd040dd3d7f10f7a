# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Restarts this host's member, while nobody else does so with another.

if ! spare "$peer"; then
	fail "it would cost the cluster its quorum, because these members do not answer: ${ill:-all}. Bring them back first"
fi
keep_hold
restart_etcd || fail "etcd does not start again. $(last_words)"
# While nobody listens, etcdctl would wait for longer than etcd takes.
is_well() { listens && answers "$own"; }
await 60 is_well || fail "etcd was restarted, but does not answer at $own. $(last_words)"

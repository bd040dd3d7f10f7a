# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails where the cluster would lose its quorum without this host's member. It comes after the texts of fail and etcd-lock.sh, and its
# environment is that of etcd-alone.sh.

known= # a member has its name, or counts without
spare "https://$host:2380" ||
	fail "etcd on $name was not restarted: it would cost the cluster its quorum, because these members do not answer: ${ill:-all}. Bring them back first"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Restarts this host's member for the sake of who has asked for it, once: while nobody else in the cluster restarts one. It may be cut at any
# line and run again. Its environment says, besides, which script does it ($restart).

[ ! -e "$restoring" ] || fail "etcd on $name is being restored ($restoring): finish that first, by the same kubexm etcd restore"
[ -e "$record" ] || fail "etcd on $name was not made a member yet: bring the host up first"
if ! is_another_since; then
	# One that does not answer is of no use to the others, so they need not be asked.
	if answers "$own"; then
		error=$(restart_alone "$restart" 2>&1) || fail "etcd on $name was not restarted: $error"
	else
		restart_etcd || fail "etcd does not start again. $(last_words)"
	fi
fi
await 60 answers "$own" || fail "etcd runs on $name, but does not answer with quorum at $own. $(last_words)"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether this host has a voting member that answers, and runs what it should. Only looks.

[ ! -e "$restoring" ] || {
	echo "a restore is under way"
	exit 1
}
listens && now=$(identity "$own") && [ -n "$now" ] || {
	echo "no voting member answers here"
	exit 1
}
[ "$(recorded)" = "member $now" ] || {
	echo "$record does not say which member runs here"
	exit 1
}
why=$(outdated)
[ -z "$why" ] || {
	echo "$why"
	exit 1
}

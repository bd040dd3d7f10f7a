# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What follow.sh and turn.sh begin with.

fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

await() {
	until=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt "$until" ] || return 1
		sleep 0.5
	done
}

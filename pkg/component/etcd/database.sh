# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the maintenance of the databases begins with. It is done from the leader's host, so that one does it.

leads() {
	now=$(status "$own") && [ "$(printf '%s\n' "$now" | field Leader)" = "$(printf '%s\n' "$now" | field MemberID)" ]
}

# Whether the database of the member at the endpoint is worth the pause: large, and more than half of it free.
is_loose() {
	now=$(status "$1") || return 1
	size=$(printf '%s\n' "$now" | field DBSize) used=$(printf '%s\n' "$now" | field DBSizeInUse)
	[ "${size:-0}" -gt "$loose" ] && [ $((used * 2)) -lt "$size" ]
}

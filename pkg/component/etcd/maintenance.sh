# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes databases that are more than half free small again, one member after the other and the leader last. Where one has
# reached its quota, history is given up first, and writes are allowed again at the end.

defragment() { # its peer URL, client URLs and name
	spare "$1" || fail "the database of $3 is not defragmented, because these members do not answer: $ill. Bring them back first"
	keep_hold
	error=$(timeout 600 etcdctl --endpoints="$2" --dial-timeout=3s --command-timeout=590s defrag 2>&1) ||
		fail "the database of $3 cannot be defragmented: $(printf '%s\n' "$error" | tail -n 1)"
	await 60 answers "$2" || fail "$3 does not answer after its database was defragmented"
}

alarms=$(ctl "$own" alarm list) || fail "etcd does not answer at $own"
full=false
case $alarms in
*CORRUPT*) fail "a member's data is corrupt, says etcd ($alarms): remove that member, and let it join anew" ;;
*NOSPACE*) full=true ;;
esac
if $full; then
	revision=$(status "$own" | field Revision)
	error=$(ctl "$own" compact --physical "$revision" 2>&1 >/dev/null) || case $error in
	*'has been compacted'*) ;;
	*) fail "history up to revision $revision is not given up: $error" ;;
	esac
fi
all=$(list "$own") || fail "the members cannot be listed at $own"
# We lead: ours comes last.
all=$(printf '%s\n' "$all" | awk -v peer="$peer" '$4 == peer { last = $0; next } { print } END { print last }')
while read -r id state label at client learner; do
	[ "$learner" = false ] && [ "$state" = started ] || continue
	if $full || is_loose "$client"; then defragment "$at" "$client" "$label"; fi
done <<END
$all
END
if $full; then ctl "$own" alarm disarm >/dev/null || fail "etcd goes on refusing writes"; fi

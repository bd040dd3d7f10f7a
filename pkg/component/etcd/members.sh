# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Removes the members of hosts that leave or are gone, one after the other and only as far as quorum lasts, and promotes learners.

case " $leaving " in
*" $peer "*) fail "$name is itself to go: that is for another member's host to bring about" ;;
esac
# One that may not go yet is passed over: without another, which does not answer, the rest may need fewer.
while :; do
	members=$(list "$own") || fail "etcd does not answer at $own"
	all=$members removed='' refused=''
	while read -r id state label at client learner; do
		[ -n "$id" ] || continue
		if ! is_to_go "$at" "$id" "$label"; then
			[ "$learner" = true ] && [ "$state" = started ] || continue
			# Its own host does the same; anyone who comes second learns that it is no learner any more.
			error=$(ctl "$own" member promote "$id" 2>&1 >/dev/null) || case $error in
			*'in sync'*) fail "the learner $label ($at) is not promoted: $error" ;;
			*'can only promote a learner'* | *'member not found'*) ;;
			*) fail "the learner $label ($at) is not promoted: $error" ;;
			esac
			continue
		fi
		if [ "$learner" = false ]; then
			look "$at" || fail "etcd does not answer at $own"
			if [ "$well" -le $(((voting - 1) / 2)) ]; then
				refused="without $label ($at) the rest would have no quorum, because these members do not answer: $ill. Bring them back first"
				continue
			fi
			now=$(status "$client") || now=
			if [ -n "$now" ] && [ "$(printf '%s\n' "$now" | field Leader)" = "$(printf '%s\n' "$now" | field MemberID)" ]; then
				next=$(printf '%s\n' "$all" | awk -v peer="$peer" '$4 == peer { print $1 }')
				ctl "$client" move-leader "$next" >/dev/null || fail "$label ($at) leads and does not hand over to $name"
			fi
		fi
		keep_hold
		error=$(change "$own" member remove "$id" 2>&1) || case $error in
		*'member not found'*) ;;
		*) fail "$label ($at) is not removed: $error" ;;
		esac
		removed=yes
		await 20 answers "$own" || fail "after $label ($at) was removed, etcd does not answer at $own"
	done <<-END
		$all
	END
	[ -n "$refused" ] || break
	[ -n "$removed" ] || fail "$refused"
done

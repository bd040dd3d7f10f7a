# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether there are members of hosts that leave, or learners that could vote. Only looks.

listens && members=$(list "$own" 2>/dev/null) || {
	echo "the members are not known: etcd does not answer here"
	exit 1
}
index=$(status "$own" | field RaftIndex)
while read -r id state label at client learner; do
	case " $leaving " in
	*" $at "*)
		echo "$label ($at) is a member still"
		exit 1
		;;
	esac
	[ "$learner" = true ] && [ "$state" = started ] || continue
	applied=$(status "$client" | field RaftAppliedIndex)
	if [ -n "$applied" ] && [ $((applied * 10)) -ge $((index * 9)) ]; then
		echo "$label ($at) is a learner and has caught up"
		exit 1
	fi
done <<END
$members
END

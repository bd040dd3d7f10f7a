# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether there are members of hosts that leave or are gone, or learners that could vote. Only looks. An etcd that runs and does not tell
# its members is no reason to change them: then it cannot be told (75, step.CannotTell). One that does not run here is for member.sh to
# start first; so is one of others, which this host has no certificate yet to ask with.

command -v etcdctl >/dev/null && listens || {
	echo "etcd does not run here"
	exit 1
}
members=$(list "$own" 2>&1) || {
	[ -e "$ETCDCTL_CERT" ] || {
		echo "there is no certificate yet to ask etcd with"
		exit 1
	}
	echo "etcd runs here and does not tell its members: ${members:-it does not answer}"
	exit 75
}
index=$(status "$own" | field RaftIndex) why=''
while read -r id state label at client learner; do
	if is_to_go "$at" "$id" "$label"; then
		why=${why:-"$label ($at) is a member still"}
		continue
	fi
	[ "$learner" = true ] && [ "$state" = started ] || continue
	applied=$(status "$client" | field RaftAppliedIndex)
	[ -z "$applied" ] || [ $((applied * 10)) -lt $((index * 9)) ] || why=${why:-"$label ($at) is a learner and has caught up"}
done <<END
$members
END
[ -z "$why" ] || {
	echo "$why"
	exit 1
}

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether the leader's host has databases to look after. Only looks.

listens && leads || exit 0
case $(ctl "$own" alarm list 2>/dev/null) in *NOSPACE*)
	echo "a database has reached its quota, and etcd refuses writes"
	exit 1
	;;
esac
members=$(list "$own" 2>/dev/null) || exit 0
while read -r id state label at client learner; do
	if [ "$learner" = false ] && [ "$state" = started ] && is_loose "$client"; then
		echo "the database of $label is more than half free"
		exit 1
	fi
done <<END
$members
END

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes this host a voting member of the etcd cluster, which it begins or joins as a learner that is then promoted, and
# restarts a member that runs with something old. It may be cut at any line and run again.

has_data() {
	for file in "$wal"/*.wal; do [ ! -e "$file" ] || return 0; done
	return 1
}

# How the data directory is to begin; it says nothing to one that has data.
write_initial() {
	printf 'ETCD_INITIAL_CLUSTER="%s"\nETCD_INITIAL_CLUSTER_STATE="%s"\n' "$1" "$2" >"$dir/.initial.env"
	mv "$dir/.initial.env" "$dir/initial.env"
}

# The entry of our peer URL among members.
ours() { printf '%s\n' "$1" | awk -v peer="$peer" '$4 == peer'; }

# A second cluster beside one that exists would be the end of that one: each member is asked, quorum or not.
begin() {
	members=$(
		for address in $others; do
			at=$(clients "$address")
			{ status "$at" >/dev/null && list "$at" --consistency=s 2>/dev/null; } &
		done
		wait
	)
	[ -z "$members" ] || fail "an etcd cluster exists, with the members" \
		"$(printf '%s\n' "$members" | sort -u | labels)." \
		"$name was to begin one, and its data directory is empty: let it join as a later member instead"
	write_initial "$name=$peer" new
}

# The other hosts on which no etcd answers, as list has members.
silent() {
	for pair in $known; do
		at=${pair#*=}
		[ "$at" = "$peer" ] || status "${at%:2380}:2379" >/dev/null || echo "- - ${pair%%=*} $at" &
	done
	wait
}

join() {
	[ -n "$others" ] || fail "$name is to join an etcd cluster, but no other member is named"
	endpoints=$(clients $others)
	members=$(list "$endpoints") ||
		fail "no etcd cluster with quorum answers at $endpoints: it must be begun and well before $name can join." \
			"These do not answer: $(silent | sort | labels)"
	read -r id state rest <<END
$(ours "$members")
END
	if [ "${state:-}" = started ]; then
		# It was a member and has lost its data: as another member it can come back.
		error=$(change "$endpoints" member remove "$id" 2>&1) ||
			fail "the member that $name was before it lost its data cannot be removed: $error"
		id=
	fi
	if [ -z "${id:-}" ]; then
		error=$(change "$endpoints" member add "$name" --learner --peer-urls="$peer" 2>&1) || case $error in
		*'too many learner'*)
			fail "$name waits for $(list "$endpoints" | awk '$6 == "true"' | labels): etcd takes one new member at a time, and" \
				"that one has not caught up yet. If it does not come by itself, bring it back, or take its host out of the cluster"
			;;
		*) fail "$name cannot be added as a learner: $error" ;;
		esac
		members=$(list "$endpoints") || fail "the members cannot be listed at $endpoints"
	fi
	write_initial "$(printf '%s\n' "$members" | awk -v peer="$peer" -v name="$name" '{
		label = $4 == peer ? name : $3 == "-" ? $1 : $3
		n = split($4, urls, ",")
		for (i = 1; i <= n; i++) { printf "%s%s=%s", sep, label, urls[i]; sep = "," }
	}')" existing
}

# The data is of a member that the others have removed while it was away: etcd refuses it. It is kept beside, once.
is_removed() {
	[ -n "$others" ] && members=$(list "$(clients $others)" 2>/dev/null) && [ -z "$(ours "$members")" ]
}

set_aside() {
	stop_etcd
	rm -rf "$data/member.removed" "$wal.removed"
	[ ! -e "$data/member" ] || mv "$data/member" "$data/member.removed"
	[ ! -e "$wal" ] || mv "$wal" "$wal.removed"
}

is_up() { listens && status "$own" >/dev/null; }

# Voting, or asked to be promoted. Only when it is in sync with the leader that is granted.
votes() {
	case $(status "$own" | field IsLearner) in
	false) return 0 ;;
	true) ;;
	*) return 1 ;;
	esac
	endpoints=$(clients $others)
	members=$(list "$endpoints" 2>&1) || { said=$members; return 1; }
	read -r id rest <<END
$(ours "$members")
END
	said=$(ctl "$endpoints" member promote "$id" 2>&1 >/dev/null) || return 1
}

# A static pod has the data and the ports, and would be started again beside the unit.
[ "$form" = pod ] || [ ! -e "$manifest" ] ||
	fail "etcd on $name is a static pod ($manifest), and the cluster's etcd is said to be a unit:" \
		"say the etcd.type that the cluster was made with, kubeadm"

if has_data && ! { listens && answers "$own"; } && is_removed; then set_aside; fi
if ! has_data; then
	stop_etcd # it may be trying again and again with an initial.env of old
	has_data || if [ "$order" = First ]; then begin; else join; fi
elif [ ! -e "$dir/initial.env" ]; then
	write_initial "$name=$peer" existing
fi

start || fail "etcd cannot be started"
why=$(outdated)
# One that does not answer is of no use to the others, so they need not be asked.
if [ -n "$why" ] && ! answers "$own"; then restart_etcd; fi
await 60 is_up || fail "etcd was started on $name, but does not answer at $own. $(last_words)"
said=
await 60 votes || fail "etcd on $name is a learner still, and is not promoted: ${said:-it is not in sync with the leader}"
await 30 answers "$own" || fail "etcd runs on $name, but the cluster has no quorum. $(last_words)"
# From now on an empty data directory must never begin a cluster.
! grep -q '="new"' "$dir/initial.env" || write_initial "$name=$peer" existing

why=$(outdated)
[ -n "$why" ] || exit 0
voters=$(list "$own" | awk -v peer="$peer" '$4 != peer && $2 == "started" && $6 == "false" { printf "%s%s", sep, $5; sep = "," }')
if [ -z "$voters" ]; then
	error=$(/bin/sh -uc "$restart" etcd 2>&1)
else
	error=$(hold 300 "$voters" "$restart" 2>&1)
fi || fail "etcd on $name is $why, and was not restarted: $error"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes this host a voting member of the etcd cluster, which it begins or joins as a learner that is then promoted, and
# restarts a member that runs with something old. It may be cut at any line and run again.
#
# A cluster is begun once. That a member has begun is remembered outside of its data, in $record, with the IDs by which its data
# is known again. The same IDs are never given twice: each time that a cluster is begun, its token has another random part.
#
#   $record                    $dir/initial.env   with data            without data
#   (none)                     (any)              start, take          begin or join, as bootstrap says
#   beginning TOKEN            new, with TOKEN    start, take          begin again, with another token: etcd was never seen to run
#   joining CLUSTER MEMBER     existing           start, take          join again, whatever bootstrap says
#   member CLUSTER MEMBER      existing, alone    start                join CLUSTER anew if it answers with quorum, else fail
#
# An etcd that is killed right after it has made its write-ahead log, and before it has written there that it is a member itself, knows
# no member at all when it is started again, and waits for a leader for ever. So data without a member counts as no data while the
# record says beginning.
#
# Neither etcd nor systemd nor the kubelet begin or join anything by themselves: "existing, alone" names no other member, so that
# etcd without data ends at once, and a pod is not started without the directory of its data (run.sh).

has_data() {
	for file in "$wal"/*.wal; do [ ! -e "$file" ] || return 0; done
	return 1
}

is_hollow() { [ "$state" = beginning ] && has_data && ! grep -aqs '"peerURLs"' "$wal"/*.wal; }

# Remember these words of the member.
remember() {
	[ "$(recorded)" != "$*" ] || return 0
	printf '%s\n' "$*" >"$dir/.member" && sync "$dir/.member" && mv "$dir/.member" "$record" || fail "$record cannot be written"
	state=$1 cluster_id=$2 member_id=${3:-}
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
	token=$cluster-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
	remember beginning "$token"
	place_data
	write_initial "$name=$peer" new "$token"
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
	read -r id was rest <<END
$(ours "$members")
END
	if [ "${was:-}" = started ]; then
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
	found=$(cluster_at "$endpoints") && [ -n "$found" ] || fail "etcd does not tell its cluster's ID at $endpoints"
	remember joining "$found" "$(ours "$members" | cut -d ' ' -f 1)"
	place_data
	write_initial "$(printf '%s\n' "$members" | awk -v peer="$peer" -v name="$name" '{
		label = $4 == peer ? name : $3 == "-" ? $1 : $3
		n = split($4, urls, ",")
		for (i = 1; i <= n; i++) { printf "%s%s=%s", sep, label, urls[i]; sep = "," }
	}')" existing "$found"
}

# The ID of the cluster that answers at the endpoints $1 with quorum.
cluster_at() { identity "$1" | cut -d ' ' -f 1; }

# Take the member $2 of the cluster $1, as which etcd runs here, for this host's. Data of another cluster than this host has joined, or
# than the others are of, is nobody's that it could be: a host may have begun one by itself, or have had one before.
take() {
	[ "$(recorded)" != "member $1 $2" ] || return 0
	there=
	case $state in
	beginning) there=$1 ;; # nobody else had one
	joining) there=$cluster_id ;;
	*) [ -z "$others" ] || there=$(cluster_at "$(clients $others)") ;;
	esac
	if [ -z "$there" ] && [ -z "$state" ] && [ "$bootstrap" = Join ] && [ -n "$others" ]; then
		fail "etcd on $name runs with data of the cluster $1, and no etcd with quorum answers at $(clients $others)" \
			"to say whether that is the one to join: bring the others back first"
	fi
	[ "${there:-$1}" = "$1" ] || fail "etcd on $name runs as the member $2 of the cluster $1, and the cluster to join is $there:" \
		"it is not taken for a member of that. If nobody needs its data in $data, reset the host or replace its Machine;" \
		"or end etcd there, move $data/member and $wal away, and run this again"
	remember member "$1" "$2"
}

# It has begun, and its data is gone: perhaps only from where it was looked for. As another member of the same cluster it can
# come back, if that has a quorum without it.
come_back() {
	found=
	[ -z "$others" ] || found=$(cluster_at "$(clients $others)")
	if [ "$found" = "$cluster_id" ]; then
		join
		return
	fi
	[ -z "$found" ] || found=" The etcd at $(clients $others) is another cluster, $found."
	fail "etcd on $name has begun before (as the member $member_id of the cluster $cluster_id) and finds no data:" \
		"its write-ahead log should be in $wal. Nothing is begun in its place.$found" \
		"Bring the data back to $data (is a file system not mounted?), or restore a snapshot to there, and run this again." \
		"If the data is lost and the other members have a quorum, bring them back first: then $name joins them anew." \
		"If all is lost, reset the host or replace its Machine"
}

# The data is of a member that the cluster of which it is has removed while it was away: etcd refuses it. What another cluster
# says is of no concern.
is_removed() {
	[ -n "$others" ] && [ -n "$member_id" ] && told=$(ctl "$(clients $others)" member list -w fields --hex 2>/dev/null) &&
		[ "$(printf '%s\n' "$told" | field ClusterID)" = "$cluster_id" ] &&
		! printf '%s\n' "$told" | grep -qxF "\"ID\" : $member_id"
}

# It is kept, each time under another name, and as often as there is a name. $1 is what happened to etcd here.
set_aside() {
	at=
	for n in $asides; do
		if [ ! -e "$data/member.removed.$n" ] && [ ! -e "$wal.removed.$n" ]; then
			at=$n
			break
		fi
	done
	[ -n "$at" ] || fail "etcd on $name $1, and its data is to be set aside, but there is data of earlier times in" \
		"$data/member.removed.*: remove what nobody needs any more, and run this again"
	stop_etcd
	[ ! -e "$data/member" ] || mv "$data/member" "$data/member.removed.$at"
	[ ! -e "$wal" ] || mv "$wal" "$wal.removed.$at"
}

# The IDs of the member that runs here, quorum or not.
which_runs() { etcdctl --endpoints="$own" --dial-timeout=3s --command-timeout=5s endpoint status -w fields --hex 2>/dev/null | ids; }

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

[ ! -e "$restoring" ] || fail "etcd on $name is being restored ($restoring): finish that first, by the same kubexm etcd restore"

# A static pod has the data and the ports, and would be started again beside the unit.
[ "$form" = pod ] || [ ! -e "$manifest" ] ||
	fail "etcd on $name is a static pod ($manifest), and the cluster's etcd is said to be a unit:" \
		"say the etcd.type that the cluster was made with, kubeadm"

state= cluster_id= member_id=
[ ! -e "$record" ] || read -r state cluster_id member_id <"$record"
# A voting member that has quorum says who it is, and needs to be asked nothing else: each question is a process that costs as much as the
# rest of this script.
now=
if has_data; then
	! listens || now=$(identity "$own")
	if [ -z "$now" ] && is_removed; then set_aside 'was removed from its cluster'; fi
fi
# One that runs as the member that is remembered has its log: it is only not where it is looked for.
if ! has_data && [ "$state" = member ] && listens && [ "$(which_runs)" = "$cluster_id $member_id" ]; then
	fail "etcd on $name runs as the member $member_id of the cluster $cluster_id, and its write-ahead log is not in $wal:" \
		"set dataDir and the argument wal-dir back to what etcd runs with, they cannot be changed." \
		"If its log was removed under it, end etcd there, and run this again"
fi
if ! has_data || is_hollow; then
	stop_etcd # it may be trying again and again with an initial.env of old
	! is_hollow || set_aside 'was killed before it had begun'
	has_data || case $state/$bootstrap in
	member/*) come_back ;;
	joining/* | */Join) join ;;
	*) begin ;;
	esac
elif [ ! -s "$dir/initial.env" ]; then
	write_initial "$name=$peer" existing none
fi

# Have etcd run, become a voting member, and answer with quorum.
come_up() {
	why=$(outdated)
	# One that does not answer is of no use to the others, so they need not be asked.
	if [ -n "$why" ] && ! answers "$own"; then restart_etcd; fi
	await 60 is_up || fail "etcd was started on $name, but does not answer at $own. $(last_words)"
	# From now on an empty data directory begins nothing.
	now=$(which_runs)
	[ -n "$now" ] || fail "etcd was started on $name, but does not say which member it is at $own"
	take $now
	said=
	await 60 votes || fail "etcd on $name is a learner still, and is not promoted: ${said:-it is not in sync with the leader}"
	await 30 answers "$own" || fail "etcd runs on $name, but the cluster has no quorum. $(last_words)"
}

start || fail "etcd cannot be started"
if [ -n "$now" ]; then take $now; else come_up; fi
write_initial "$name=$peer" existing none

why=$(outdated)
[ -n "$why" ] || exit 0
error=$(restart_alone "$restart" 2>&1) || fail "etcd on $name is $why, and was not restarted: $error"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# The lock by which members of etcd are away one at a time, whoever restarts, removes or defragments them, and whether one can be away at all.
# It comes after the text of fail, and its environment says with which certificates etcdctl asks (ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY),
# where this host's member is (own), and which hosts are known, as name=peer URL (known).

# Whether a voting member is at the endpoint and has quorum. (Not "endpoint health": an alarm is no illness here.)
answers() { timeout 6 etcdctl --endpoints="$1" --dial-timeout=2s --command-timeout=4s get kubexm >/dev/null 2>&1; }

# etcdctl at the endpoints $1. It logs a lot: of its errors only the last word is let through.
ctl() (
	at=$1
	shift
	exec 3>&1
	error=$(timeout 20 etcdctl --endpoints="$at" --dial-timeout=3s --command-timeout=7s "$@" 2>&1 >&3 3>&-) && exit
	code=$?
	printf '%s\n' "$error" | sed -n 's/^Error: //p' >&2
	exit "$code"
)

# The members that the endpoints tell of, one a line: ID, started or not, name, peer URL, client URLs, whether a learner;
# what it has none of is "-". One that has not started has not told its name, but it is known. Further words are etcdctl's.
list() (
	endpoints=$1
	shift
	told=$(ctl "$endpoints" member list "$@") || exit
	printf '%s\n' "$told" | awk -F', ' -v known="$known" '
		BEGIN { for (n = split(known, words, /[ =]/); n > 1; n -= 2) names[words[n]] = words[n - 1] }
		$3 == "" { $3 = names[$4] }
		{ for (i = 1; i < NF; i++) printf "%s ", ($i == "" ? "-" : $i); print $NF }'
)

# Count the voting members: how many there are with the one whose peer URL is $1, how many of the others answer, and the names
# of those that do not.
count() (
	voting=0 well=0 ill=
	members=$(list "$own") || exit
	while read -r id state label at client learner; do
		[ "$learner" = false ] || continue
		voting=$((voting + 1))
		[ "$at" != "$1" ] || continue
		if [ "$state" = started ] && answers "$client"; then well=$((well + 1)); else ill="$ill $label ($at)"; fi
	done <<END
$members
END
	echo "$voting $well $ill"
)

# Look at the others than the member with the peer URL $1; see count.
look() {
	counted=$(count "$1") || return
	read -r voting well ill <<END
$counted
END
}

# Whether the member with the peer URL $1 can be away for a while: the others keep quorum, or (there are two) are all well.
spare() {
	voting= well= ill=
	look "$1" && { [ "$well" -gt $((voting / 2)) ] || [ -z "$ill" ]; }
}

# Run the script $3 while nobody else in the cluster restarts, removes or defragments a member, waiting for it and with it at
# most $1 seconds; $2 are the endpoints that keep the lock. It goes with the one who holds it, however that one ends.
hold() (
	export lockers="$2"
	error=$(timeout "$1" etcdctl --endpoints="$2" --dial-timeout=5s lock --ttl=20 kubexm/etcd -- /bin/sh -uc "$3" etcd 2>&1) && exit
	code=$?
	[ "$code" -ne 124 ] || fail "others in the cluster restart, remove or defragment members for $1 s already"
	printf '%s\n' "$error" | grep -v -e '^{' -e '^Error: exit status' >&2
	exit "$code"
)

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the scripts of this package begin with, and what belongs to the lock of etcd's members with it (etcd-lock.sh). Their environment
# says:
#   form            unit or pod
#   name host       this member's name, and its address as it stands in URLs
#   bootstrap       Init or Join
#   others leaving  addresses of the other hosts that are to be members, and peer URLs of those that are to go
#   known           all of these and this host, as name=peer URL
#   gone            names or IDs of members that none of these is, whose hosts are known to be gone
#   cluster         the cluster's name
#   dir             where certificates, initial.env and the member's record are
#   data wal        where the data is, and its write-ahead log
#   config digest   the unit file or the pod's template, and the sha256 that it must have
#   program run     etcd, and the directory that systemd makes when it starts it (unit)
#   manifest        what the kubelet reads (pod)
#   users           units of this host that use it, and come after it in systemd's order (unit)
#   restoring       a path that exists while a restore is under way

own=https://$host:2379 peer=https://$host:2380
export ETCDCTL_CACERT="$dir/ssl/ca.pem" ETCDCTL_CERT="$dir/ssl/admin-$name.pem" ETCDCTL_KEY="$dir/ssl/admin-$name-key.pem"

fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

# The client URLs of these addresses, as etcdctl wants them.
clients() {
	urls=
	for address; do urls=$urls${urls:+,}https://$address:2379; done
	printf '%s' "$urls"
}

# Whether anything listens for clients at this host's address, or at all that it has, as members of others do.
is_heard() {
	[ -n "$(ss -Htln "src $host:2379")" ] || ss -Htln "sport = :2379" | grep -qF -e ' 0.0.0.0:2379 ' -e ' *:2379 ' -e ' [::]:2379 '
}

# Whether anything listens for clients here: etcdctl would wait for it.
listens() { ! command -v ss >/dev/null || is_heard; }

# The status of the member at the endpoint: one '"Field" : value' a line; quorum is not needed.
status() { timeout 4 etcdctl --endpoints="$1" --dial-timeout=1s --command-timeout=2s endpoint status -w fields 2>/dev/null; }
field() { sed -n "s/^\"$1\" : //p" | head -n 1; }

# The IDs of the cluster and of the member that answers, of what etcdctl prints with "-w fields --hex".
ids() { sed -n -e 's/^"ClusterID" : //p' -e 's/^"MemberID" : //p' | head -n 2 | paste -s -d ' ' -; }

# The IDs of the member at the endpoint $1, if it is a voting one and has quorum: like answers, and it says who.
identity() { timeout 6 etcdctl --endpoints="$1" --dial-timeout=2s --command-timeout=4s get kubexm -w fields --hex 2>/dev/null | ids; }

# What is remembered of this member outside of its data: see the table in member.sh.
record=$dir/member
recorded() { cat "$record" 2>/dev/null; }

# Whether the member with the peer URL $1, the ID $2 and the name $3 is to go: a host that leaves has it, or no host that is known
# and it is said to be gone.
is_to_go() {
	case " $leaving " in *" $1 "*) return 0 ;; esac
	! is_known "$1" || return 1
	case " $gone " in *" $2 "* | *" $3 "*) return 0 ;; esac
	return 1
}

is_known() { case " $known " in *"=$1 "*) return 0 ;; *) return 1 ;; esac; }

# Those of them that are on the standard input, for people.
labels() { awk '{ printf "%s%s (%s)", sep, $3, $4; sep = ", " }'; }

# Change the membership at the endpoints $1: "member" and further words. After each change etcd wants its members connected for
# some seconds before it makes another.
change() (
	until=$(($(date +%s) + 15))
	until error=$(ctl "$@" 2>&1 >/dev/null); do
		case $error in *'unhealthy cluster'*) ;; *) break ;; esac
		[ "$(date +%s)" -lt "$until" ] || break
		sleep 0.5
	done
	[ -z "$error" ] || fail "$error"
)

# Try for $1 seconds until the command succeeds.
await() {
	until=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt "$until" ] || return 1
		sleep 0.2
	done
}

# Fail if the lock with which hold runs a script is lost, as it is when etcd is not told for 20 s that it is held: the script goes on
# all the same. It is asked for right before what costs a member.
keep_hold() {
	[ -n "${ETCD_LOCK_KEY:-}" ] || return 0
	is_held() { [ -n "$(ctl "$lockers" get "$ETCD_LOCK_KEY" --keys-only)" ]; }
	await 5 is_held || fail "$name has lost the lock under which one member at a time is restarted, defragmented or removed: nothing more is done"
}

# Why etcd must be restarted, or nothing. A file from the future says nothing: a clock was set back since.
outdated() {
	if [ "$(sha256sum <"$config" | cut -c 1-64)" != "$digest" ]; then
		echo "$config is to change"
	elif [ "$form" = pod ]; then
		[ "$(installed)" = "$(wanted_pod)" ] || echo "older than $config or the certificate authority"
	elif [ ! -d "$run" ] && systemctl is-active --quiet etcd.service; then
		echo "started by another unit than $config" # as by that of others, from whom the host was adopted
	else
		now=$(date +%s)
		for file in "$config" "$program" "$dir/ssl/ca.pem"; do
			[ "$file" -nt "$run" ] && [ "$(stat -c %Y "$file")" -le "$now" ] && { echo "older than $file"; return; }
		done
	fi
	return 0
}

# What the pod runs with, as its manifest says and as it should: the manifest itself tells more, which counts only once.
installed() { sed -n "s/^ *kubexm.cluster.x-k8s.io\/config: '\(.*\)'/\1/p" "$manifest" 2>/dev/null; }
wanted_pod() { cat "$config" "$dir/ssl/ca.pem" | sha256sum | cut -c 1-64; }

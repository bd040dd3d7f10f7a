# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What etcd says of its members and alarms, asked at the member of this host. Only looks. Its environment says:
#   name host  the host's name, and its address as it stands in URLs
#   dir        where etcd's certificates are
#
# It prints when it asked, then what etcdctl prints, a word before each. Exit code 1: it has not answered, and what begins with "why" says why
# not. (Within a session on the host, standard error is not read.)

echo "asked $(date +%s%N)"
fail() {
	printf 'why %s\n' "$*"
	exit 1
}
# etcdctl logs a lot: of its errors only the last word is let through.
ctl() (
	exec 3>&1
	error=$(ETCDCTL_CACERT="$dir/ssl/ca.pem" ETCDCTL_CERT="$dir/ssl/admin-$name.pem" ETCDCTL_KEY="$dir/ssl/admin-$name-key.pem" \
		timeout 6 etcdctl --endpoints="https://$host:2379" --dial-timeout=2s --command-timeout=4s -w json "$@" 2>&1 >&3 3>&-) && exit
	printf '%s\n' "$error" | sed -n 's/^Error: //p' | tail -n 1
	exit 1
)

command -v etcdctl >/dev/null && [ -f "$dir/ssl/admin-$name-key.pem" ] || fail "the host has no member of etcd yet: etcdctl, or its certificate, is not there"
# At the host's address, or at all that it has, as members of others do.
is_heard() {
	[ -n "$(ss -Htln "src $host:2379")" ] || ss -Htln "sport = :2379" | grep -qF -e ' 0.0.0.0:2379 ' -e ' *:2379 ' -e ' [::]:2379 '
}
! command -v ss >/dev/null || is_heard || fail "nothing listens at $host:2379"
members=$(ctl member list) || fail "etcd does not say who its members are at $host:2379: it does not answer, or has no quorum${members:+ ($members)}"
alarms=$(ctl alarm list) || fail "etcd does not say which alarms there are at $host:2379${alarms:+: $alarms}"
printf 'members %s\nalarms %s\n' "$members" "$alarms"

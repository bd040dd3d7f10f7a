# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Saves a snapshot of etcd. The environment says:
#   endpoints     URLs of members; the first that gives one is enough
#   ca cert key   files by which etcd is reached, or nothing
#   foreign       whether others run etcd, and may keep its data to themselves
#   dir keep      where snapshots are, and how many of them stay
#   asked         when somebody has asked for it, if anybody has: another time is another snapshot
# It may be cut at any line and run again: what is not whole has a name that begins with a dot.

fail() {
	rm -f "$dir"/.new*
	printf '%s\n' "$*" >&2
	exit 1
}

# A host that was never finished has nothing to save, unless somebody counts on it.
nothing() {
	[ -z "${asked:-}" ] || fail "no snapshot of etcd can be saved on this host, which lacks $1"
	exit 0
}

command -v etcdctl >/dev/null || nothing etcdctl
if [ -n "$ca" ]; then
	[ -e "$cert" ] || nothing "$cert"
	export ETCDCTL_CACERT="$ca" ETCDCTL_CERT="$cert" ETCDCTL_KEY="$key"
fi
umask 077
mkdir -p "$dir" && chmod 0700 "$dir" || fail "$dir cannot be made"
new=$dir/.new why=
for endpoint in $endpoints; do
	rm -f "$new" "$new".*
	# Asked for a snapshot, etcdctl would wait for a member that is not there.
	error=$(etcdctl --endpoints="$endpoint" --dial-timeout=3s --command-timeout=5s endpoint status 2>&1 >/dev/null) &&
		error=$(etcdctl --endpoints="$endpoint" --dial-timeout=3s --command-timeout=20m snapshot save "$new" 2>&1 >/dev/null) && break
	case $foreign/$error in true/*[Pp]ermission*denied* | true/*PermissionDenied* | true/*'user name'* | true/*Unimplemented*)
		echo "$endpoint does not let us have a snapshot: no snapshot is saved" >&2
		rm -f "$new" "$new".*
		exit 0
		;;
	esac
	why="$why
$endpoint: $(printf '%s\n' "$error" | tail -n 1 | cut -c 1-300)"
done
[ -s "$new" ] || fail "etcd gives no snapshot, and without one nothing is replaced. Is it well, and is there space in $dir?$why"
# etcd ends a snapshot with the sum of all before.
sum=$(head -c -32 "$new" | sha256sum | cut -c 1-64)
[ "$sum" = "$(tail -c 32 "$new" | od -An -v -tx1 | tr -d ' \n')" ] || fail "the snapshot from $endpoint is damaged: its sum does not match"
name=$dir/$(date -u +%Y%m%dT%H%M%SZ).db
sync "$new" && mv -fT "$new" "$name" || fail "$name cannot be written"
ls -1 "$dir" | grep '\.db$' | sort -r | tail -n +$((keep + 1)) | while read -r old; do rm -f "$dir/$old"; done
echo "etcd is saved in $name"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Saves a backup of etcd: a snapshot NAME.db, and beside it NAME.json, which says what it is. It comes after cluster.sh, whose environment
# it has. That says, besides:
#   into keep       the directory, and how many backups of the cluster stay there (0: all)
#   asked           when somebody has asked for it (as 20261123T210000Z); nothing for now, as on a schedule
#   kubernetes      the version of Kubernetes
#   owner           the record of whose this host is, which has the fingerprint of the cluster's certificate authority
# What is not whole has a name that begins with a dot. A backup counts when its NAME.json is there, which is written last. It may be
# cut at any line and run again. On a host one is saved at a time: the timer's, and those that somebody asks for.

umask 077
stamp=${asked:-$(date -u +%Y%m%dT%H%M%SZ)}
backup=etcd-$cluster-$stamp-$name

command -v etcdctl >/dev/null && command -v etcdutl >/dev/null ||
	fail "etcdctl and etcdutl are not both on $name: bring the host up to date first (kubexm create cluster -f config.yaml)"
[ -d "$into" ] || mkdir -p -m 0700 "$into" || fail "the directory $into cannot be made"
authority=$(sed -n 's/.*"authority":"\([^"]*\)".*/\1/p' "$owner" 2>/dev/null)
[ -n "$authority" ] || fail "$owner does not say whose certificate authority this host has: is it one of the cluster's hosts?"

# The lock is that of a directory of this host: $into may be a file system of the network, which has none for directories.
exec 9<"$dir" && flock -w 600 9 ||
	fail "another backup of etcd is being saved on $name for 10 minutes already: run this again when it has ended"
new=$into/.$backup.new
# Also what one that was killed has left.
discard() {
	rm -f "$into/.etcd-$cluster-"*"-$name.new"*
	[ -e "$into/$backup.json" ] || rm -f "$into/$backup.db"
}
discard
trap discard EXIT
trap 'exit 1' HUP INT TERM

# The member on this host has all that is acknowledged once it answers with quorum.
id=$(identity "$own") && [ -n "$id" ] || fail "etcd on $name does not answer with quorum at $own, so what it has may be old: nothing is saved"
now=$(etcdctl --endpoints="$own" --dial-timeout=3s --command-timeout=5s endpoint status -w fields 2>/dev/null)
version=$(printf '%s\n' "$now" | sed -n 's/^"Version" : "\(.*\)"/\1/p')
error=$(etcdctl --endpoints="$own" --dial-timeout=3s --command-timeout=20m snapshot save "$new" 2>&1 >/dev/null) && [ -s "$new" ] ||
	fail "etcd gives no snapshot: $(printf '%s\n' "$error" | tail -n 1 | cut -c 1-300). Is there space in $into?"
# etcd ends a snapshot with the sum of all before.
sum=$(head -c -32 "$new" | sha256sum | cut -c 1-64)
[ "$sum" = "$(tail -c 32 "$new" | od -An -v -tx1 | tr -d ' \n')" ] || fail "the snapshot is damaged: its sum does not match"
told=$(etcdutl snapshot status "$new" -w json 2>/dev/null) || fail "the snapshot is damaged: etcdutl cannot read it"
revision=$(printf '%s\n' "$told" | sed -n 's/.*"revision":\([0-9]*\).*/\1/p')
[ -n "$revision" ] || fail "etcdutl does not say at which revision the snapshot is"

cat >"$new.json" <<END || fail "$into cannot be written"
{
  "cluster": "$cluster",
  "authority": "$authority",
  "kubernetesVersion": "$kubernetes",
  "etcdVersion": "$version",
  "etcdClusterID": "${id% *}",
  "host": "$name",
  "time": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
  "revision": $revision,
  "size": $(stat -c %s "$new"),
  "sha256": "$(sha256sum <"$new" | cut -c 1-64)"
}
END
sync "$new" "$new.json" && mv -fT "$new" "$into/$backup.db" && mv -fT "$new.json" "$into/$backup.json" && sync "$into" ||
	fail "$into/$backup cannot be written"

# Only what is whole and of this cluster is counted, and only that is removed. What was just saved is the first that stays, although its
# name may be the oldest: clocks are set.
is_whole() {
	grep -qF "\"cluster\": \"$cluster\"," "$into/$1.json" && grep -qF "\"authority\": \"$authority\"," "$into/$1.json" &&
		[ "$(sed -n 's/.*"size": \([0-9]*\),.*/\1/p' "$into/$1.json")" = "$(stat -c %s "$into/$1.db" 2>/dev/null)" ]
}
[ "$keep" -gt 0 ] || exit 0
kept=1
for each in $(ls -1 "$into" | sed -n 's/^\(etcd-.*-[0-9]\{8\}T[0-9]\{6\}Z-.*\)\.json$/\1/p' | sort -r); do
	[ "$each" != "$backup" ] && is_whole "$each" || continue
	kept=$((kept + 1))
	[ "$kept" -le "$keep" ] || rm -f "$into/$each.json" "$into/$each.db"
done

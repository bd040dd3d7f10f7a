# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Puts the snapshot's data in the place of what is there, which is set aside in $data/replaced.$id. etcd has ended. It comes after
# restore.sh. Until $restore/restored is there, nothing has been started with what it makes: then all of it is made again.

begin_restore
[ ! -e "$restore/restored" ] || exit 0
stop_for_restore # a host that was booted since has started it again
default=$data/member/wal work=$data/.restoring aside=$data/replaced.$id
if [ ! -e "$restore/aside" ]; then
	mkdir -p -m 0700 "$aside" || fail "$aside cannot be made"
	if [ -e "$data/member" ]; then
		[ ! -e "$aside/member" ] || fail "$aside/member is there, and data in $data too: move one of them away"
		mv "$data/member" "$aside/member" || fail "$data/member cannot be moved to $aside"
	fi
	if [ "$wal" != "$default" ] && [ -e "$wal" ]; then
		# It may be on another file system.
		rm -rf "$aside/.wal" && cp -a "$wal" "$aside/.wal" && sync "$aside" && rm -rf "$aside/wal" && mv "$aside/.wal" "$aside/wal" ||
			fail "$wal cannot be copied to $aside"
	fi
	sync "$data"
	mark aside
fi
rm -rf "$work" "$data/member" || fail "$data cannot be written"
set -- --data-dir "$work"
if [ "$wal" != "$default" ]; then
	rm -rf "$wal" "$wal.tmp" || fail "$wal cannot be removed"
	set -- "$@" --wal-dir "$wal.tmp"
fi
error=$(etcdutl snapshot restore "$snapshot" "$@" --name "$name" --initial-cluster "$initial" --initial-cluster-token "$token" \
	--initial-advertise-peer-urls "$peer" --bump-revision "$bump" --mark-compacted 2>&1) ||
	fail "etcdutl cannot restore the snapshot: $(printf '%s\n' "$error" | tail -n 1 | cut -c 1-300)"
chown -R --reference="$data" "$work" || fail "$work cannot be given to etcd's account"
if [ "$wal" != "$default" ]; then
	chown -R --reference="$data" "$wal.tmp" && mv "$wal.tmp" "$wal" || fail "$wal cannot be put in place"
fi
mv "$work/member" "$data/member" && rm -rf "$work" && sync -f "$data" || fail "$data/member cannot be put in place"
mark restored

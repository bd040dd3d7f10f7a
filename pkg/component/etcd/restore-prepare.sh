# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Finds out, before anything ends, whether the snapshot can be restored on this host.

command -v etcdctl >/dev/null && command -v etcdutl >/dev/null ||
	fail "etcdctl and etcdutl are not both on $name: they come with kubexm create cluster -f config.yaml"
[ "$(sha256sum <"$snapshot" | cut -c 1-64)" = "$sum" ] || fail "$snapshot is not what was sent: run this again"
etcdutl snapshot status "$snapshot" -w json >/dev/null 2>&1 || fail "$snapshot is no snapshot that this host's etcdutl can read"
# The database is copied, and a write-ahead log made, beside what is there.
need=$(($(stat -c %s "$snapshot") / 1024 * 5 / 4 + 131072))
free=$(df -Pk "$data" | awk 'NR == 2 { print $4 }')
[ "$free" -ge "$need" ] || fail "there are $((free / 1024)) MiB free in $data, and the restore needs $((need / 1024)): make space; nothing was changed"

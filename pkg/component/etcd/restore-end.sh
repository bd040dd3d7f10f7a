# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Ends the restore on this host: the snapshot goes, and of what was set aside by restores the last $keep stay. It may be cut at any line and
# run again. That a restore is under way goes first: without "restored" beside it, etcd would be ended for data that is restored already.

rm -f "$restore/under-way" && rm -rf "$restore" || fail "$restore cannot be removed"
ls -1dt "$data"/replaced.* 2>/dev/null | tail -n +$((keep + 1)) | while read -r old; do rm -rf "$old"; done

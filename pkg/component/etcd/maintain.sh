# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Maintains the databases while nobody else has a member away, except when there is no space: a lock is a write too.

full() { case $(ctl "$own" alarm list) in *NOSPACE*) ;; *) return 1 ;; esac; }

if ! full; then
	error=$(hold 1500 "$own" "$maintenance" 2>&1) && exit
	code=$?
	case $error in
	*'database space exceeded'*) await 5 full || : ;; # the lock itself was the write that reached the quota
	*)
		printf '%s\n' "$error" >&2
		exit "$code"
		;;
	esac
fi
/bin/sh -uc "$maintenance" etcd

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Maintains the databases while nobody else has a member away, except when there is no space: a lock is a write too.

case $(ctl "$own" alarm list) in
*NOSPACE*) /bin/sh -uc "$maintenance" etcd ;;
*) hold 1500 "$own" "$maintenance" ;;
esac

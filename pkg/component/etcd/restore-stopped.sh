# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether etcd has ended, while it must: a host that was booted since may have started it again. Only looks.

[ -e "$restore/under-way" ] && [ ! -e "$restore/restored" ] && ! is_silent || exit 0
echo "etcd runs, and its data is not restored yet"
exit 1

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether this host has no API server. Only looks. It comes after the text of ready.sh.

[ ! -e "$dir/manifests/kube-apiserver.yaml" ] && ! api /livez >/dev/null && exit
echo "kube-apiserver has a manifest, or answers still"
exit 1

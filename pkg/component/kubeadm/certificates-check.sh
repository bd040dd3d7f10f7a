# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether all certificates of kubeadm last. Only looks.

[ -e "$dir/manifests/kube-apiserver.yaml" ] || exit 0 # there are none yet
soon=$(ending) || {
	echo "kubeadm does not tell when the certificates end"
	exit 1
}
[ -z "$soon" ] && exit
printf '%s\n' "$soon"
exit 1

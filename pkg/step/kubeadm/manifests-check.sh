# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether the static pods were made of what has the digest $digest, and nobody has changed their manifests since. Only looks.

made=$dir/kubeadm-control-plane.yaml
[ "$(sha256sum 2>/dev/null <"$made" | cut -c 1-64)" = "$digest" ] || {
	echo "made of another $made"
	exit 1
}
for component in $components; do
	is_kept "$component" || {
		echo "$dir/manifests/$component.yaml is not as kubeadm has made it"
		exit 1
	}
done

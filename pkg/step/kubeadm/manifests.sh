# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the scripts about the manifests of kubeadm's static pods begin with. A copy of each as it was when its component ran is
# kept: by it a manifest is known that somebody has spoiled or taken away. Scripts that write come after the text of ready.sh, too.
# Their environment says:
#   dir             where Kubernetes' files are
#   components      those that are static pods here: etcd first if kubeadm runs it, then the API server, then those who use it

copies=$dir/kubexm-manifests

# The manifest as it counts: without our marks. (The line "annotations:" may have come with one.)
plain() { grep -v -e '^    kubexm.io/' -e '^  annotations:$' "$1"; }

# Whether the component's manifest is what it was when the component ran.
is_kept() {
	[ -e "$dir/manifests/$1.yaml" ] && [ -e "$copies/$1.yaml" ] &&
		[ "$(plain "$dir/manifests/$1.yaml" | sha256sum)" = "$(plain "$copies/$1.yaml" | sha256sum)" ]
}

# Keep the manifests as they are.
keep() {
	mkdir -p -m 0700 "$copies" || fail "$copies cannot be made"
	for component in $components; do
		cp -p "$dir/manifests/$component.yaml" "$copies/.$component.yaml" && mv "$copies/.$component.yaml" "$copies/$component.yaml" ||
			fail "$dir/manifests/$component.yaml cannot be copied to $copies"
	done
}

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the kubelet's configuration what kubeadm makes of $config, below $kubelet; $dir is where Kubernetes' files are. It comes after
# the kubelet's change.sh.

new=$dir/.kubexm-kubelet
rm -rf "$new"
trap 'rm -rf "$new"' EXIT
mkdir -m 0700 "$new" || fail "$new cannot be made"
# kubeadm writes what it would do into a directory, and nothing else.
error=$(printf '%s\n' "$config" | KUBEADM_INIT_DRYRUN_DIR="$new" kubeadm init phase kubelet-start --dry-run --config /dev/stdin 2>&1 >/dev/null) ||
	fail "kubeadm cannot make the kubelet's configuration: $(printf '%s\n' "$error" | tail -n 1)"
begin
set --
for file in config.yaml kubeadm-flags.env instance-config.yaml; do
	[ ! -e "$new/$file" ] || place "$kubelet/$file" "$new/$file"
	set -- "$@" "$kubelet/$file"
done
end "$@"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the kubelet's configuration what kubeadm makes of $config, below $kubelet; $dir is where Kubernetes' files are. A file that is what it
# must be stays as old as it is: by that one knows that the kubelet need not be restarted.

new=$dir/.kubexm-kubelet
rm -rf "$new"
trap 'rm -rf "$new"' EXIT
mkdir -m 0700 "$new" || fail "$new cannot be made"
# kubeadm writes what it would do into a directory, and nothing else.
error=$(printf '%s\n' "$config" | KUBEADM_INIT_DRYRUN_DIR="$new" kubeadm init phase kubelet-start --dry-run --config /dev/stdin 2>&1 >/dev/null) ||
	fail "kubeadm cannot make the kubelet's configuration: $(printf '%s\n' "$error" | grep -v '^To see the stack trace' | tail -n 1)"
for file in config.yaml kubeadm-flags.env instance-config.yaml; do
	[ -e "$new/$file" ] && ! cmp -s "$new/$file" "$kubelet/$file" || continue
	cp "$new/$file" "$kubelet/.$file.kubexm" && chmod 0600 "$kubelet/.$file.kubexm" && mv "$kubelet/.$file.kubexm" "$kubelet/$file" ||
		fail "$kubelet/$file cannot be written"
done

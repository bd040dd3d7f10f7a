# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Records that kubeadm has just made the static pods, of $config. It may be cut at any line and run again. Its environment says:
#   dir             where Kubernetes' files are
#   config          what they were made of
#   names           what the API server's certificate was made for, a line each
#   made            a line for each static pod: its name, and the digest of what it was made of

copies=$dir/kubexm-manifests
mkdir -p -m 0700 "$copies" || fail "$copies cannot be made"
printf %s "$made" | while read -r component digest; do
	cp -p "$dir/manifests/$component.yaml" "$copies/.$component.yaml" && mv "$copies/.$component.yaml" "$copies/$component.yaml" ||
		fail "$dir/manifests/$component.yaml cannot be copied to $copies"
	(umask 077 && printf '%s\n' "$digest" >"$copies/$component.made") || fail "$copies cannot be written"
done || exit
(umask 077 && printf %s "$names" >"$copies/apiserver.names") || fail "$copies cannot be written"
file=$dir/kubeadm-control-plane.yaml
(umask 077 && printf %s "$config" >"$file.part") && mv "$file.part" "$file" || fail "$file cannot be written"

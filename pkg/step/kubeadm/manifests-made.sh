# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Records that kubeadm has just made the static pods, of $config. It may be cut at any line and run again.

keep
made=$dir/kubeadm-control-plane.yaml
(umask 077 && printf %s "$config" >"$made.part") && mv "$made.part" "$made" || fail "$made cannot be written"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints what kubeadm makes of $config for $component by its phase $phase, in a directory of its own that is removed: nothing else changes.
# Where there is no directory $patches, kubeadm lays none over it.
PATH=$PATH:/usr/local/bin:/usr/bin
new=$(mktemp -d) || exit
trap 'rm -rf "$new"' EXIT
[ -d "$patches" ] || config=$(printf '%s\n' "$config" | sed '/^patches:$/,/^  directory:/d')
error=$(printf '%s\n' "$config" | KUBEADM_INIT_DRYRUN_DIR="$new" kubeadm init phase $phase --dry-run --config /dev/stdin 2>&1 >/dev/null) || {
	printf '%s\n' "$error" | grep -v '^To see the stack trace' | tail -n 1
	exit 1
}
case $component in
kubelet)
	cat "$new/config.yaml"
	[ ! -e "$new/kubeadm-flags.env" ] || sed 's/^KUBELET_KUBEADM_ARGS=/kubeadmArgs: /' "$new/kubeadm-flags.env"
	;;
*) cat "$new/$component.yaml" ;;
esac

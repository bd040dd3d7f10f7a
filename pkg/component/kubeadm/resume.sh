# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Gives the kubelet the manifests back that halt.sh keeps. It may be cut at any line and run again. It comes after the text of ready.sh.

for each in $components; do
	from=$restore/manifests/$each.yaml to=$dir/manifests/$each.yaml
	[ -e "$to" ] || { cp -p "$from" "$dir/.kubexm-resumed" && mv "$dir/.kubexm-resumed" "$to"; } || fail "$to cannot be restored from $from"
done
rm -f "$restore/halted"

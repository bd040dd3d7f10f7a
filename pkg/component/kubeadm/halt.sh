# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Has the kubelet end this host's control plane, but etcd, and keeps its manifests in $restore until etcd is restored. It may be cut at any
# line and run again. It comes after the text of ready.sh. Its environment says, besides:
#   restore         the directory of what is of a restore that is under way
#   components      the static pods, and those first that others need
#   patience        seconds that the API server may take

mkdir -p -m 0700 "$restore/manifests" && : >"$restore/halted" || fail "$restore cannot be written"
for each in $components; do
	from=$dir/manifests/$each.yaml to=$restore/manifests/$each.yaml
	if [ -e "$from" ]; then
		cp -p "$from" "$to.part" && sync "$to.part" && mv "$to.part" "$to" && rm -f "$from" || fail "$from cannot be moved to $to"
	fi
	[ -e "$to" ] || fail "$each has no manifest, neither $from nor $to: bring the host up first"
done
ended() { ! api /livez >/dev/null; }
await "$patience" ended || fail "kube-apiserver's manifest was removed, and it answers still after $patience s: is the kubelet well?"

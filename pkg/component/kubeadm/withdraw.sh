# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Has the kubelet end this host's API server, and waits until it does not answer. It may be cut at any line and run again. It comes
# after the text of ready.sh. Its environment says, besides:
#   patience        seconds that the API server may take to end

rm -f "$dir/manifests/kube-apiserver.yaml" || fail "$dir/manifests/kube-apiserver.yaml cannot be removed"
ended() { ! api /livez >/dev/null; }
await "$patience" ended || fail "kube-apiserver's manifest was removed, and it answers still after $patience s: is the kubelet well?"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the API server's serving certificate anew, as kubeadm makes it of $config, whose certificatesDir is $new; $pki is where certificates
# are. It may be cut at any line and run again.

rm -rf "$new"
trap 'rm -rf "$new"' EXIT
mkdir -m 0700 "$new" && cp -p "$pki/ca.crt" "$pki/ca.key" "$new/" || fail "$new cannot be made"
error=$(printf '%s\n' "$config" | kubeadm init phase certs apiserver --config /dev/stdin 2>&1 >/dev/null) ||
	fail "kubeadm cannot make the API server's certificate: $(printf '%s\n' "$error" | grep -v '^To see the stack trace' | tail -n 1)"
# An API server that sees the one and not yet the other goes on with what it has.
mv "$new/apiserver.key" "$pki/apiserver.key" && mv "$new/apiserver.crt" "$pki/apiserver.crt" || fail "$pki cannot be written"

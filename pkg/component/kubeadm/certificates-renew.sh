# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Renews certificates of kubeadm, which disturbs nobody. It may be cut at any line and run again.

if [ -n "$names" ]; then
	renew=$names
else
	renew=$(ending) || fail "kubeadm does not tell when the certificates end: $(certs check-expiration 2>&1 | tail -n 1)"
	[ -z "$renew" ] || renew=all
fi
for one in $renew; do
	error=$(certs renew "$one" 2>&1) || fail "kubeadm cannot renew the certificates ($one): $(printf '%s\n' "$error" | grep -v '^To see the stack trace' | tail -n 1)"
done

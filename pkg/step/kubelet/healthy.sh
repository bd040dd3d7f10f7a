# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Waits until the kubelet is healthy. It comes after change.sh.

await "$patience" is_healthy ||
	fail "the kubelet is not healthy after $patience s (for more: journalctl -u kubelet); the last that it said: $(last_words)"

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Waits $1 seconds at most until the API server of this host is ready. The other arguments are the command that asks it.
patience=$1
shift
end=$(($(date +%s) + patience))
until said=$("$@" 2>&1); do
	if [ "$(date +%s)" -ge "$end" ]; then
		echo "kube-apiserver is not ready after $patience s: $said" >&2
		echo "The last that it said (for more: journalctl -u kube-apiserver):" >&2
		journalctl -q _SYSTEMD_UNIT=kube-apiserver.service -n 5 -o cat --no-pager | grep . >&2 ||
			journalctl -u kube-apiserver -n 5 -o cat --no-pager >&2
		exit 1
	fi
	sleep 0.5
done

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints what the host can tell of what ails it, compressed. Of each journal and log the last 4 MiB, which compress to less than a
# tenth; of all the first 64 MiB; and in the end not more than the 15 MiB that the answer to a command has place for. The arguments are services beside etcd's and Kubernetes' own.

each=4194304
all=67108864
most=15728640

section() { printf '\n==> %s <==\n' "$1"; }

journal() {
	section "journal of $1"
	shift
	journalctl --no-pager --output short-iso --lines 50000 "$@" 2>&1 | tail -c "$each"
}

{
	section 'host'
	date -u +%FT%TZ
	uname -a
	uptime
	free -m
	df -h / /var/lib
	section 'units that have failed'
	systemctl list-units --failed --plain --no-legend --no-pager
	for unit in $(systemctl list-units --all --plain --no-legend --no-pager --type service \
		'kube*' 'etcd*' "$@" | awk '{ print $1 }'); do
		journal "$unit" --unit "$unit"
	done
	journal 'the kernel' --dmesg
	for log in /var/log/pods/kube-system_*/*/*.log; do
		[ -f "$log" ] || continue
		section "$log"
		tail -c "$each" "$log"
	done
	section 'what kubexm has done here'
	tail -c "$each" /var/lib/kubexm/journal
} 2>&1 | head -c "$all" | gzip -c | head -c "$most"

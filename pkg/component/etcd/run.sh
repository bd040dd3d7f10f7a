# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# How etcd is started, restarted and stopped: by systemd, or by the kubelet as a static pod.

# Make the directory by which a pod knows that its data is there, before there is any: see hold_pod.
place_data() {
	[ "$form" = pod ] || return 0
	mkdir -p -m 0700 "$data/member" && mkdir -p -m 0700 "$wal" && chown --reference="$data" "$data/member" "$wal" ||
		fail "$wal cannot be made"
}

# How the data directory is to begin; it says nothing to one that has data. It is there as a whole or not at all: with nothing of it, etcd
# begins a cluster of its own.
write_initial() {
	printf 'ETCD_INITIAL_CLUSTER="%s"\nETCD_INITIAL_CLUSTER_STATE="%s"\nETCD_INITIAL_CLUSTER_TOKEN="%s"\n' "$@" >"$dir/.initial.env" &&
		sync "$dir/.initial.env" && mv "$dir/.initial.env" "$dir/initial.env" && sync "$dir" || fail "$dir/initial.env cannot be written"
}

# The manifest tells etcd for ever how it began, and would have it begin anew wherever its data is gone. So the pod mounts its
# write-ahead log once more, by a link that lies outside of the data. Where that leads nowhere, the kubelet does not start the pod,
# and containerd does not start its container: a path that is missing it would make, which it cannot where a link is.
hold_pod() { ln -sfn "$wal" "$dir/begun" || fail "$dir/begun cannot be made"; }

# Hand the pod to the kubelet, with what only this host knows.
install_pod() {
	. "$dir/initial.env"
	hold_pod
	sed -e "s|@INITIAL_CLUSTER@|$ETCD_INITIAL_CLUSTER|" -e "s|@INITIAL_CLUSTER_STATE@|$ETCD_INITIAL_CLUSTER_STATE|" \
		-e "s|@INITIAL_CLUSTER_TOKEN@|$ETCD_INITIAL_CLUSTER_TOKEN|" -e "s|@CONFIG@|$(wanted_pod)|" "$config" >"$dir/.manifest" &&
		sync "$dir/.manifest" && mv "$dir/.manifest" "$manifest" && sync "${manifest%/*}" || fail "$manifest cannot be written"
}

start() {
	if [ "$form" = pod ]; then
		[ -e "$manifest" ] || install_pod
		return
	fi
	[ "$(systemctl show -p NeedDaemonReload --value etcd.service)" != yes ] || systemctl daemon-reload
	systemctl reset-failed etcd.service 2>/dev/null
	systemctl start --no-block etcd.service
}

# The process that listens for clients.
listener() { ss -Htlnp "sport = :2379" | sed -n 's/.*pid=\([0-9]*\).*/\1/p' | head -n 1; }
is_another() { now=$(listener) && [ -n "$now" ] && [ "$now" != "$before" ]; }

restart_etcd() {
	# It would end, and not start again.
	[ -s "$dir/initial.env" ] || fail "$dir/initial.env does not say how etcd on $name began: bring the host up to date first"
	if [ "$form" = pod ]; then
		before=$(listener)
		install_pod
		await 90 is_another
		return
	fi
	systemctl daemon-reload
	# An etcd that ends waits for those who watch it to go, up to 7 s. So they are to end first, and to start after it: systemd orders the
	# jobs so when theirs is there before etcd's, and goes on with them when this script is cut.
	timeout 100 systemctl restart $(running $users) etcd.service || systemctl is-active --quiet etcd.service
}

# Run the script $1, which restarts etcd, while no other member is away. Who votes alone has nobody to ask.
restart_alone() {
	there=$(list "$own") || fail "the members cannot be listed at $own"
	voters=$(printf '%s\n' "$there" |
		awk -v peer="$peer" '$4 != peer && $2 == "started" && $6 == "false" { printf "%s%s", sep, $5; sep = "," }')
	if [ -z "$voters" ]; then
		/bin/sh -uc "$1" etcd
	else
		hold 300 "$voters" "$1"
	fi
}

# Those of these units that run.
running() {
	for unit; do
		! systemctl is-active --quiet "$unit" || echo "$unit"
	done
}

is_gone() { [ -z "$(listener)" ]; }

# Only for one that has no data and can therefore not be of use to anybody.
stop_etcd() {
	if [ "$form" = pod ]; then
		[ -e "$manifest" ] || return 0
		rm -f "$manifest"
		await 60 is_gone || fail "the kubelet does not stop the etcd pod whose manifest was removed: is the kubelet well?"
	else
		systemctl stop etcd.service 2>/dev/null
	fi
}

# What etcd itself said last, for the end of a message.
last_words() {
	[ "$form" = unit ] || return 0
	timeout 10 journalctl --sync 2>/dev/null
	journalctl -u etcd.service -n 100 -o cat --no-pager 2>/dev/null | grep -E '"level":"(error|fatal|panic)"' | tail -n 1
}

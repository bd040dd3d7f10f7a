# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the scripts about a restart that somebody has asked for have in common. They come after the texts of cluster.sh and run.sh. Their
# environment says, besides:
#   asked           a file that is as old as the request

# Whether the process $1 began after the file $2 was written, by the kernel's clock that is never set.
began_after() {
	past=$(awk -v ticks="$(getconf CLK_TCK)" 'NR == FNR { up = $1; next } { sub(/^.*\) /, ""); print up - $20 / ticks }' /proc/uptime "/proc/$1/stat") &&
		awk -v process="$past" -v file="$(($(date +%s%N) / 1000000))" -v at="$(stat -c %.3Y "$2")" 'BEGIN { exit !(process < file / 1000 - at) }'
}

# Whether the member that runs here began after it was asked to. systemd makes the directory of a unit when it starts it.
is_another_since() {
	if [ "$form" = unit ]; then
		systemctl is-active --quiet etcd.service && [ "$run" -nt "$asked" ]
		return
	fi
	now=$(listener) && [ -n "$now" ] && began_after "$now" "$asked"
}

# A pod is not given another manifest for this: the kubelet starts its container again when that ends.
if [ "$form" = pod ]; then
	restart_etcd() {
		before=$(listener)
		[ -z "$before" ] || kill "$before"
		await 90 is_another
	}
fi


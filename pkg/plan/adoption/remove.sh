# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Empties the directory $1 of all but the paths in the rest of $@, which packages own. It may be cut and run again.

# What is mounted below goes first, the last mount before the others.
unmount() {
	mounts=
	while read -r id parent device root point rest; do
		# mountinfo writes blanks in octal.
		case $point in *\\*) point=$(printf %b "$point") ;; esac
		case $point in "$1"/*) mounts="$point
$mounts" ;; esac
	done </proc/self/mountinfo
	printf %s "$mounts" | while read -r point; do
		umount -- "$point" 2>/dev/null || umount -l -- "$point" || exit
	done
}

# Directory $1, of which the rest of $@ stays. What is in $entry after it has called itself is another's.
empty() {
	directory=$1
	shift
	for entry in "$directory"/* "$directory"/.[!.]* "$directory"/..?*; do
		[ -e "$entry" ] || [ -L "$entry" ] || continue
		goes=1
		for stays; do
			case $stays/ in "$entry"/*) goes= ;; esac
		done
		if [ -n "$goes" ]; then
			rm -rf --one-file-system -- "$entry" || exit
		elif [ -d "$entry" ] && [ ! -L "$entry" ]; then
			empty "$entry" "$@"
		fi
	done
}

[ -d "$1" ] && [ ! -L "$1" ] || exit 0
unmount "$1" || exit
empty "$@"

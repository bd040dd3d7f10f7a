# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Keeps copies of files in a directory ($1 is open), or restores them and removes it (undo). $2 is the directory, the other
# arguments are the files. Each has its number there; one that did not exist has none. It may be cut at any line and run again.
what=$1 dir=$2
shift 2
case $what in
open)
	[ ! -d "$dir" ] || exit 0
	rm -rf "$dir.part"
	mkdir -m 0700 "$dir.part"
	n=0
	for file; do
		n=$((n + 1))
		[ ! -e "$file" ] || cp -p "$file" "$dir.part/$n"
	done
	sync -f "$dir.part"
	mv -T "$dir.part" "$dir"
	;;
undo)
	rm -rf "$dir.part"
	[ -d "$dir" ] || exit 0
	n=0
	for file; do
		n=$((n + 1))
		if [ ! -e "$dir/$n" ]; then
			rm -f "$file"
		elif ! cmp -s "$dir/$n" "$file"; then
			# A name that begins with a dot is read by nobody.
			new=${file%/*}/.${file##*/}.kubexm
			cp -p "$dir/$n" "$new"
			mv -fT "$new" "$file"
		fi
	done
	rm -rf "$dir"
	;;
esac

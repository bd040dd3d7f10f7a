# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints of each path in $@ that a package owns, or the first files below which one owns, a line: path, blank, package. Only looks.
owner() {
	if command -v dpkg-query >/dev/null 2>&1; then
		dpkg-query -S "$1" 2>/dev/null | sed -n '/^diversion/!{s/[:,].*//p;q}'
	elif command -v rpm >/dev/null 2>&1; then
		rpm -qf --qf '%{NAME}\n' "$1" 2>/dev/null | sed -n '/ /!{p;q}'
	fi
}
for path; do
	file=$path
	[ ! -d "$path" ] || file=$(find "$path" -xdev -maxdepth 2 -type f 2>/dev/null | head -n 1)
	[ -e "$file" ] || continue
	package=$(owner "$file")
	[ -z "$package" ] || printf '%s %s\n' "$path" "$package"
done
exit 0

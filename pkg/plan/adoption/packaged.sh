# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints what packages own of the paths in $@ and below them, a line each: package, blank, path. Only looks.
owned() {
	if command -v dpkg-query >/dev/null 2>&1; then
		for path; do
			shift
			set -- "$@" "$path" "$path/*"
		done
		dpkg-query -S -- "$@" 2>/dev/null | sed -n '/^\(local \)\{0,1\}diversion /!s|^\([^:,]*\).*: \(/.*\)$|\1 \2|p'
	elif command -v rpm >/dev/null 2>&1; then
		rpm -qa --qf '[%{=NAME} %{FILENAMES}\n]' | awk 'BEGIN {
			for (i = 1; i < ARGC; i++) { asked[i] = ARGV[i]; ARGV[i] = "" }
		} {
			path = substr($0, index($0, " ") + 1)
			for (i in asked) if (path == asked[i] || index(path, asked[i] "/") == 1) { print; next }
		}' "$@"
	fi
}
owned "$@" | while read -r package path; do
	if [ -e "$path" ] || [ -L "$path" ]; then printf '%s %s\n' "$package" "$path"; fi
done
exit 0

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Says of each unit in $@ what systemd makes it of: its files with their lines, in their order, the names of variables in its environment
# files, and the arguments of its process, if it has one. Only looks.
for unit; do
	printf 'unit %s\n' "$unit"
	{
		systemctl show -p FragmentPath --value "$unit"
		systemctl show -p DropInPaths --value "$unit" | tr ' ' '\n'
	} | while IFS= read -r file; do
		[ -f "$file" ] || continue
		printf 'file %s\n' "$file"
		sed -e :a -e '/\\$/{N;s/\\\n/ /;ba' -e '}' "$file" | sed 's/^/line /'
	done
	systemctl show -p EnvironmentFiles "$unit" | sed -n 's/^EnvironmentFiles=\(.*\) (ignore_errors=[a-z]*)$/\1/p' | while IFS= read -r file; do
		[ -f "$file" ] || continue
		sed -n 's/^[[:space:]]*\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' "$file" | while read -r name; do
			printf 'variable %s %s\n' "$name" "$file"
		done
	done
	pid=$(systemctl show -p MainPID --value "$unit")
	[ "${pid:-0}" -eq 0 ] || tr '\0' '\n' <"/proc/$pid/cmdline" | sed 's/^/argument /'
done
exit 0

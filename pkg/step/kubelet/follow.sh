# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Brings the files of a kubelet that runs to what they must be: each argument is a file, and its content is the environment's
# file_1, file_2 and so on. It comes after change.sh.

[ ! -e "$upgrading" ] && has_run || exit 0
begin
n=0
for file; do
	n=$((n + 1))
	eval "printf '%s' \"\$file_$n\"" >"$kept/.new"
	place "$file" "$kept/.new"
	rm -f "$kept/.new"
done
end "$@"

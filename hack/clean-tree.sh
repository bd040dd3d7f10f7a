#!/usr/bin/env bash
# Fails when generating or tidying has changed a file, and shows what.
set -euo pipefail
changed=$(git status --porcelain)
[ -z "$changed" ] && exit 0
echo "the tree is not what it generates; run 'make generate' and 'go mod tidy', and commit:" >&2
echo "$changed" >&2
git --no-pager diff --stat >&2
exit 1

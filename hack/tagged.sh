#!/usr/bin/env bash
# Lists the packages that have test files with the build tag $1.
set -euo pipefail
grep -rl --include='*_test.go' "^//go:build .*\b$1\b" . | xargs -n1 dirname | sort -u

#!/usr/bin/env bash
# Runs a command that may print nothing for long, and says every ten seconds what it is about:
#   hack/patience.sh "compiling kubexm" go build …
set -euo pipefail
what=$1
shift
# A read that times out, and no sleep: that would outlive this script and keep its output open.
exec 3<> <(:)
while true; do
	read -r -t "${PATIENCE:-10}" -u 3 || echo "  $what: $SECONDS s"
done &
beat=$!
trap 'kill $beat 2>/dev/null || true' EXIT
"$@"

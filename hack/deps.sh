#!/usr/bin/env bash
# Installs the distribution packages that building artifacts and making test hosts need, where they are missing. Debian and
# its relatives only: elsewhere it says what to install.
set -euo pipefail
packages=(gcc libc6-dev pkg-config libseccomp-dev mmdebstrap apt-utils openssh-client)
missing=()
for p in "${packages[@]}"; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
command -v apt-get >/dev/null || { echo "please install: ${packages[*]} (Debian's names)" >&2; exit 1; }
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the certificates that are in the arguments, directories and kubeconfigs, each file under a line with its name, and
# nothing else of them: keys lie beside them, and in the same files.
set -u

# The lines of certificates. One that is cut off ends where something else begins, which may be a key.
only='
	/-----BEGIN/ { on = 0 }
	/^-----BEGIN CERTIFICATE-----/ { on = 1 }
	on { print }
	/^-----END CERTIFICATE-----/ { on = 0 }
'

for at; do
	shift
	case $at in
	*.conf)
		[ -f "$at" ] || continue
		data=$(awk '$1 == "client-certificate-data:" { print $2 }' "$at")
		[ -n "$data" ] || continue
		echo "# $at"
		echo "$data" | base64 -d | awk "$only"
		;;
	*)
		for file in "$at"/*.crt "$at"/*/*.crt "$at"/*.pem; do
			case $file in
			*/kubelet-*-[0-9]*.pem) continue ;; # what the kubelet had before; *-current.pem is a link to the one it has
			esac
			[ ! -f "$file" ] || set -- "$@" "$file"
		done
		;;
	esac
done
# One process for all files, of which there are many on each look at each host.
[ $# -eq 0 ] || awk "FNR == 1 { on = 0; print \"# \" FILENAME } $only" "$@"

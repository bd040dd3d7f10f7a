# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the certificates that are in the arguments, directories and kubeconfigs, each file under a line with its name, and
# nothing else of them: keys lie beside them, and in the same files.
set -u

certificates() {
	awk '/^-----BEGIN CERTIFICATE-----/ { on = 1 } on { print } /^-----END CERTIFICATE-----/ { on = 0 }'
}

for at; do
	case $at in
	*.conf)
		[ -f "$at" ] || continue
		echo "# $at"
		awk '$1 == "client-certificate-data:" { print $2 }' "$at" | base64 -d | certificates
		;;
	*)
		for file in "$at"/*.crt "$at"/*.pem; do
			case $file in
			*/kubelet-*-[0-9]*.pem) continue ;; # what the kubelet had before; *-current.pem is a link to the one it has
			esac
			[ -f "$file" ] || continue
			echo "# $file"
			certificates <"$file"
		done
		;;
	esac
done

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the scripts about kubeadm's certificates begin with. Their environment says:
#   config          kubeadm's configuration: all that it must know, so that it asks nobody
#   within          seconds before its end at which a certificate is renewed
#   names           certificates that are renewed now, whenever they end, as kubeadm names them; or nothing
#   dir             where Kubernetes' files are

certs() { printf '%s\n' "$config" | kubeadm certs "$@" --config /dev/stdin; }

# The certificates that end soon, with when they do. One that ends with its authority is not among them: no other would last
# longer.
ending() (
	told=$(certs check-expiration -o go-template='{{range .certificateAuthorities}}{{.name}} {{.residualTime}}
{{end}}{{range .certificates}}{{if not (or .missing .externallyManaged)}}
{{- .name}} {{.caName}} {{.residualTime}} {{.expirationDate}}
{{end}}{{end}}' 2>/dev/null) || return
	printf '%s\n' "$told" | awk -v within="$within" '
		NF == 2 { authority[$1] = $2 }
		NF == 4 && $3 < within && $3 + 60 < authority[$2] { print $1, "ends", $4 }'
)

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the scripts about kubeadm's certificates begin with. Their environment says:
#   name host port  this Node's name, its address as it stands in URLs, and its API server's port
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

# What a component reads when it starts of what kubeadm renews. (etcd, and whoever goes to it, reads its own at each handshake.)
files() {
	case $1 in
	kube-apiserver) echo "$dir/pki/apiserver.crt $dir/pki/apiserver-kubelet-client.crt $dir/pki/front-proxy-client.crt" ;;
	kube-controller-manager) echo "$dir/controller-manager.conf" ;;
	kube-scheduler) echo "$dir/scheduler.conf" ;;
	esac
}

# The components that were started with certificates of before. kubeadm writes manifests last, and so do we.
outdated() {
	for component in kube-apiserver kube-controller-manager kube-scheduler; do
		manifest=$dir/manifests/$component.yaml
		[ -e "$manifest" ] || continue
		for file in $(files "$component"); do
			[ ! "$file" -nt "$manifest" ] || { echo "$component"; break; }
		done
	done
}

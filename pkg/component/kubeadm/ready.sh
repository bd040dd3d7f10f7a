# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# What the scripts about static pods that run begin with. Their environment says:
#   name host port  this Node's name, its address as it stands in URLs, and its API server's port
#   dir             where Kubernetes' files are

# What the API server on this host says to the kubelet, which may know its own Node's pods. (admin.conf may be kept elsewhere.)
api() { kubectl --kubeconfig "$dir/kubelet.conf" --server "https://$host:$port" --request-timeout 5s get --raw "$1" 2>/dev/null; }

# Whether the component's pod is Ready, and is the one whose manifest has the mark $2, if that is not empty.
is_ready() {
	pod=$(api "/api/v1/namespaces/kube-system/pods/$1-$name") || return
	case $pod in *'"kubexm.cluster.x-k8s.io/manifest":"'"$2"'"'*) ;; *) [ -z "$2" ] || return 1 ;; esac
	printf '%s\n' "$pod" | tr '{}' '\n\n' | grep -q '"type":"Ready".*"status":"True"'
}

await() {
	until=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt "$until" ] || return 1
		sleep 1
	done
}

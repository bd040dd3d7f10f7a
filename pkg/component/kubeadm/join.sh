# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Joins the control plane; $1 is kubeadm's configuration. Where an earlier attempt was cut after the kubelet had got its
# certificate, kubeadm would refuse to start it again, because a Node of this name is Ready already: its own. The phases
# behind that (etcd's member, the static pods, the taint) bear being done twice.
skip=preflight
if [ -e /etc/kubernetes/kubelet.conf ] && [ -e /var/lib/kubelet/pki/kubelet-client-current.pem ]; then
	skip=$skip,kubelet-start,kubelet-wait-bootstrap
	systemctl start kubelet.service || exit
fi
exec /usr/local/bin/kubeadm join --config "$1" --skip-phases "$skip"

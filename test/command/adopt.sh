# Makes a cluster by kubeadm as an administrator does: $1 is the function, and the environment has HOST, ADDRESS, VERSION, PAUSE, ETCD_TAG,
# DNS_REPOSITORY, DNS_TAG and, to join, SERVER and TOKEN. Programs are in /usr/local/bin and /opt/cni/bin. It runs on the host as root.
set -eu

# prepare is what the documentation of Kubernetes has administrators do, with a containerd that they configure.
prepare() {
	for module in overlay br_netfilter; do modprobe $module 2>/dev/null || true; done
	printf 'net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\n' >/etc/sysctl.d/90-kubernetes.conf
	sysctl -q -p /etc/sysctl.d/90-kubernetes.conf
	mkdir -p /etc/containerd /etc/kubernetes /lib/modules
	cat >/etc/containerd/config.toml <<FILE
version = 3

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "$PAUSE"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = false
FILE
	cat >/etc/systemd/system/containerd.service <<'FILE'
[Unit]
After=network.target local-fs.target

[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
LimitNOFILE=1048576
TasksMax=infinity

[Install]
WantedBy=multi-user.target
FILE
	cat >/etc/systemd/system/kubelet.service <<'FILE'
[Unit]
After=network-online.target containerd.service
StartLimitIntervalSec=0

[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/local/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
FILE
	: >/etc/kubernetes/resolv.conf
	systemctl daemon-reload
	systemctl enable --now --quiet containerd
	systemctl enable --quiet kubelet
}

registration() {
	cat <<FILE
nodeRegistration:
  name: $HOST
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: Never
  kubeletExtraArgs:
  - {name: node-ip, value: $ADDRESS}
  - {name: resolv-conf, value: /etc/kubernetes/resolv.conf}
FILE
}

# begin has a flag and a name of its certificate that nobody else declares.
begin() {
	{
		printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n'
		registration
		cat <<FILE
localAPIEndpoint: {advertiseAddress: $ADDRESS, bindPort: 6443}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: $VERSION
networking: {podSubnet: 10.244.0.0/16}
apiServer:
  certSANs: [theirs.example.org]
  extraArgs: [{name: default-not-ready-toleration-seconds, value: "77"}]
etcd: {local: {imageTag: $ETCD_TAG}}
dns: {imageRepository: $DNS_REPOSITORY, imageTag: $DNS_TAG}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failSwapOn: false
failCgroupV1: false
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
FILE
	} >/root/init.yaml
	kubeadm init --config /root/init.yaml --skip-phases preflight >/root/init.log 2>&1 || { tail -20 /root/init.log; journalctl -u kubelet -n 20 -o cat --no-pager; exit 1; }
	export KUBECONFIG=/etc/kubernetes/admin.conf
	# CoreDNS does not start with no resolver to forward to.
	kubectl --namespace kube-system get configmap coredns -o yaml | sed '/^ *forward /,/}/d' | kubectl apply -f - >/dev/null 2>&1
	rm -f /root/init.yaml /root/init.log
}

token() { kubeadm token create; }

join() {
	{
		printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n'
		registration
		printf 'discovery: {bootstrapToken: {apiServerEndpoint: "%s", token: "%s", unsafeSkipCAVerification: true}}\n' "$SERVER" "$TOKEN"
	} >/root/join.yaml
	kubeadm join --config /root/join.yaml --skip-phases preflight >/root/join.log 2>&1 || { tail -20 /root/join.log; journalctl -u kubelet -n 20 -o cat --no-pager; exit 1; }
	rm -f /root/join.yaml /root/join.log
}

"$1"

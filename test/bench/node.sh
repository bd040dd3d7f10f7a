# What makes a host a Node, by what an administrator has: OpenSSH, tar, ctr and kubeadm. join.sh and six.sh begin with these functions.
# host names the host, ADDRESS is its address and ROLE what it becomes, worker or control-plane. ARTIFACTS has bin/, cni/ and images.tar,
# PAUSE names the pause image, KUBECTL is a program for this machine, and DIR has ssh_config. The host's files are those that the pipeline
# makes too.
set -eu

# One connection serves all commands to the host.
remote() {
	ssh -F "$DIR/ssh_config" -o ControlMaster=auto -o ControlPath="$DIR/ssh-%C" -o ControlPersist=10 "$host" "$@"
}

disconnect() {
	remote -O exit 2>/dev/null || true
}

programs() {
	tar -C "$ARTIFACTS" --dereference -cf - bin cni | remote '
		sudo mkdir -p /usr/local/bin /opt/cni/bin
		sudo tar -C /usr/local --no-same-owner -xf - bin --transform="s,^cni,/opt/cni/bin," cni -P'
}

images() {
	remote sudo ctr --namespace k8s.io images import --local - <"$ARTIFACTS/images.tar"
}

# authorities copies those of the control plane from the host that began it, which is $1, with what else its API servers share: the audit
# policy and the key of encryption at rest, where it has them.
authorities() {
	ssh -F "$DIR/ssh_config" "$1" 'cd /etc/kubernetes && sudo tar -cf - $(ls -d apiserver encryption 2>/dev/null) \
		pki/ca.crt pki/ca.key pki/front-proxy-ca.crt pki/front-proxy-ca.key pki/sa.pub pki/sa.key pki/etcd/ca.crt pki/etcd/ca.key' |
		remote 'sudo mkdir -p /etc/kubernetes && sudo tar -C /etc/kubernetes --no-same-owner -xf -'
}

# The functions below print what the host's shell is to do.

settings() {
	cat <<END
set -eu
for module in overlay br_netfilter; do
	modprobe \$module 2>/dev/null || true
done
printf 'overlay\nbr_netfilter\n' >/etc/modules-load.d/kubernetes.conf
cat >/etc/sysctl.d/90-kubernetes.conf <<'FILE'
net.ipv4.ip_forward = 1
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
vm.overcommit_memory = 1
kernel.panic = 10
kernel.panic_on_oops = 1
net.ipv4.conf.all.route_localnet = 1
vm.panic_on_oom = 0
kernel.keys.root_maxkeys = 1000000
kernel.keys.root_maxbytes = 25000000
FILE
sysctl -q -p /etc/sysctl.d/90-kubernetes.conf
grep -q '$host' /etc/hosts || echo '$ADDRESS $host' >>/etc/hosts
mkdir -p /etc/containerd/certs.d /etc/kubernetes/pki /etc/kubernetes/manifests /etc/kubernetes/patches /lib/modules
cat >/etc/containerd/config.toml <<'FILE'
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "$PAUSE"

[plugins."io.containerd.cri.v1.images".registry]
  config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/opt/cni/bin"]
  conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "/usr/local/bin/runc"
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
ExecStart=/usr/local/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \$KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
FILE
: >/etc/kubernetes/resolv.conf
cat >/etc/kubernetes/patches/kubeletconfiguration.yaml <<'FILE'
cgroupDriver: cgroupfs
failSwapOn: true
maxPods: 110
podPidsLimit: 10000
FILE
[ -f /sys/fs/cgroup/cgroup.controllers ] || echo 'failCgroupV1: false' >>/etc/kubernetes/patches/kubeletconfiguration.yaml
END
}

# joining is to the cluster of KUBECONFIG, with a token of the host that began it, which is $1.
joining() {
	token=$(ssh -F "$DIR/ssh_config" "$1" sudo kubeadm token create)
	api=$("$KUBECTL" config view --minify -o 'jsonpath={.clusters[0].cluster.server}')
	ca=$("$KUBECTL" config view --minify --raw -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}')
	plane= taints='[]'
	if [ "$ROLE" = control-plane ]; then
		plane="controlPlane: {localAPIEndpoint: {advertiseAddress: $ADDRESS, bindPort: 6443}}"
		taints='[{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]'
	fi
	cat <<END
echo '$ca' | base64 -d >/etc/kubernetes/pki/ca.crt
cat >/etc/kubernetes/discovery.conf <<'FILE'
apiVersion: v1
kind: Config
current-context: bench
clusters:
- name: bench
  cluster: {server: "$api", certificate-authority: /etc/kubernetes/pki/ca.crt}
contexts:
- name: bench
  context: {cluster: bench, user: bootstrap}
users:
- name: bootstrap
  user: {}
FILE
cat >/etc/kubernetes/join.yaml <<'FILE'
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
nodeRegistration:
  name: $host
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: Never
  taints: $taints
  kubeletExtraArgs:
  - {name: node-ip, value: $ADDRESS}
  - {name: resolv-conf, value: /etc/kubernetes/resolv.conf}
discovery:
  file: {kubeConfigPath: /etc/kubernetes/discovery.conf}
  tlsBootstrapToken: $token
patches: {directory: /etc/kubernetes/patches}
$plane
FILE
END
}

starting() {
	cat <<END
systemctl daemon-reload
systemctl enable --now --quiet containerd
systemctl enable --quiet kubelet
END
}

# follow runs kubeadm, and shows what the kubelet has said when that fails.
follow() {
	remote sudo kubeadm "$@" --skip-phases preflight || {
		remote sudo journalctl -u kubelet -n 20 -o cat --no-pager
		exit 1
	}
}

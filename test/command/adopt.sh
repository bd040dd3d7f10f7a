# Makes a cluster by kubeadm as an administrator does: $1 is the function, and the environment has HOST, ADDRESS, VERSION, PAUSE, ETCD_TAG,
# DNS_REPOSITORY, DNS_TAG, ENDPOINT where there is one, ETCD_URL where kubeadm does not run etcd (one, or several with commas), with
# ETCD_FILES (the authority, the certificate and the key that API servers go there with) and, to join, SERVER and TOKEN, and KEY for the
# control plane. Programs are in /usr/local/bin and /opt/cni/bin; where PACKAGES is not empty, packages were made of them; where KUBEKEY is
# not, units are as KubeKey has them. It runs on the host as root.
set -eu

# deb installs what is below /root/debs/$1 as the package $1 of version $2.
deb() {
	tree=/root/debs/$1
	mkdir -p "$tree/DEBIAN"
	printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: nobody <nobody@localhost>\nDescription: %s\n' "$1" "$2" "$1" >"$tree/DEBIAN/control"
	(cd "$tree" && find . -path ./DEBIAN -prune -o -type f -print | sed 's|^./||' | xargs md5sum) >"$tree/DEBIAN/md5sums"
	dpkg-deb --root-owner-group -Znone --build "$tree" "$tree.deb" >/dev/null
	dpkg --force-confold -i "$tree.deb" >/dev/null
	rm -rf "$tree" "$tree.deb"
}

# kubernetes lays out the programs in $2 as the packages kubelet and kubeadm of pkgs.k8s.io, of version $1.
kubernetes() {
	into=/root/debs/kubelet
	mkdir -p $into/DEBIAN $into/usr/bin $into/usr/lib/systemd/system $into/etc/default $into/etc/kubernetes/manifests $into/var/lib/kubelet
	cp "$2/kubelet" $into/usr/bin/
	: >$into/etc/kubernetes/manifests/.kubelet-keep
	: >$into/var/lib/kubelet/.kubelet-keep
	echo KUBELET_EXTRA_ARGS= >$into/etc/default/kubelet
	echo /etc/default/kubelet >$into/DEBIAN/conffiles
	cat >$into/usr/lib/systemd/system/kubelet.service <<'FILE'
[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
FILE
	printf '#!/bin/sh\nsystemctl daemon-reload\nsystemctl try-restart kubelet\n' >$into/DEBIAN/postinst
	chmod 0755 $into/DEBIAN/postinst
	deb kubelet "$1"

	into=/root/debs/kubeadm
	mkdir -p $into/usr/bin $into/usr/lib/systemd/system/kubelet.service.d
	cp "$2/kubeadm" $into/usr/bin/
	cat >$into/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf <<FILE
# Note: This dropin only works with kubeadm and kubelet v1.11+ (of the package $1)
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet \$KUBELET_KUBECONFIG_ARGS \$KUBELET_CONFIG_ARGS \$KUBELET_KUBEADM_ARGS \$KUBELET_EXTRA_ARGS
FILE
	deb kubeadm "$1"
}

# packages makes packages of all programs, and puts those of Kubernetes on hold.
packages() {
	mkdir -p /root/debs/kubectl/usr/bin /root/debs/kubernetes-cni/opt/cni /root/debs/containerd.io/usr/bin \
		/root/debs/containerd.io/usr/lib/systemd/system /root/debs/containerd.io/etc/containerd /root/debs/containerd.io/DEBIAN
	kubernetes 1.0 /usr/local/bin
	mv /usr/local/bin/kubectl /root/debs/kubectl/usr/bin/
	deb kubectl 1.0
	mv /opt/cni/bin /root/debs/kubernetes-cni/opt/cni/
	deb kubernetes-cni 1.0
	for program in containerd containerd-shim-runc-v2 ctr runc; do
		mv /usr/local/bin/$program /root/debs/containerd.io/usr/bin/
	done
	echo '# empty' >/root/debs/containerd.io/etc/containerd/config.toml
	echo /etc/containerd/config.toml >/root/debs/containerd.io/DEBIAN/conffiles
	containerd_unit /usr/bin >/root/debs/containerd.io/usr/lib/systemd/system/containerd.service
	deb containerd.io 1.0
	rm -rf /usr/local/bin/kube*
	apt-mark hold kubelet kubeadm kubectl >/dev/null
}

# upgraded is what becomes of the packages when somebody does not leave them on hold.
upgraded() { kubernetes 2.0 /usr/bin; }

containerd_unit() {
	cat <<FILE
[Unit]
After=network.target local-fs.target

[Service]
ExecStart=$1/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
LimitNOFILE=1048576
TasksMax=infinity

[Install]
WantedBy=multi-user.target
FILE
}

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
	: >/etc/kubernetes/resolv.conf
	[ -n "${PACKAGES:-}" ] || units
	[ -z "${KUBEKEY:-}" ] || kubekey_kubelet
	systemctl daemon-reload
	systemctl enable --now --quiet containerd
	systemctl enable --quiet kubelet
}

units() {
	containerd_unit /usr/local/bin >/etc/systemd/system/containerd.service
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
}

# kubekey_kubelet has the kubelet's flags in a drop-in in /etc, which no package owns.
kubekey_kubelet() {
	mkdir -p /etc/systemd/system/kubelet.service.d
	cat >/etc/systemd/system/kubelet.service <<'FILE'
[Unit]
Description=their kubelet

[Service]
CPUAccounting=true
ExecStart=/usr/local/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
FILE
	cat >/etc/systemd/system/kubelet.service.d/10-kubeadm.conf <<FILE
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
Environment="KUBELET_EXTRA_ARGS=--node-ip=$ADDRESS --hostname-override=$HOST "
ExecStart=
ExecStart=/usr/local/bin/kubelet \$KUBELET_KUBECONFIG_ARGS \$KUBELET_CONFIG_ARGS \$KUBELET_KUBEADM_ARGS \$KUBELET_EXTRA_ARGS
FILE
}

# kubekey_etcd has etcd run as KubeKey does on a control plane host. MEMBERS are all of them, each with its peer URL; the certificates are
# there. It does not wait for the others.
kubekey_etcd() {
	own=/etc/ssl/etcd/ssl/member-$HOST
	cat >/etc/etcd.env <<FILE
ETCD_NAME=etcd-$HOST
ETCD_DATA_DIR=/var/lib/etcd
ETCD_LISTEN_CLIENT_URLS=https://$ADDRESS:2379,https://127.0.0.1:2379
ETCD_ADVERTISE_CLIENT_URLS=https://$ADDRESS:2379
ETCD_LISTEN_PEER_URLS=https://$ADDRESS:2380
ETCD_INITIAL_ADVERTISE_PEER_URLS=https://$ADDRESS:2380
ETCD_INITIAL_CLUSTER=$MEMBERS
ETCD_INITIAL_CLUSTER_TOKEN=k8s_etcd
ETCD_INITIAL_CLUSTER_STATE=new
ETCD_ELECTION_TIMEOUT=5000
ETCD_HEARTBEAT_INTERVAL=250
ETCD_AUTO_COMPACTION_RETENTION=8
ETCD_SNAPSHOT_COUNT=10000
ETCD_METRICS=basic
ETCD_PROXY=off
ETCD_ENABLE_V2=true
ETCD_TRUSTED_CA_FILE=/etc/ssl/etcd/ssl/ca.pem
ETCD_CERT_FILE=$own.pem
ETCD_KEY_FILE=$own-key.pem
ETCD_CLIENT_CERT_AUTH=true
ETCD_PEER_TRUSTED_CA_FILE=/etc/ssl/etcd/ssl/ca.pem
ETCD_PEER_CERT_FILE=$own.pem
ETCD_PEER_KEY_FILE=$own-key.pem
ETCD_PEER_CLIENT_CERT_AUTH=true
ETCDCTL_ENDPOINTS=https://127.0.0.1:2379
ETCDCTL_CACERT=/etc/ssl/etcd/ssl/ca.pem
ETCDCTL_CERT=/etc/ssl/etcd/ssl/admin-$HOST.pem
ETCDCTL_KEY=/etc/ssl/etcd/ssl/admin-$HOST-key.pem
FILE
	cat >/etc/systemd/system/etcd.service <<'FILE'
[Unit]
After=network.target

[Service]
Type=notify
User=root
EnvironmentFile=/etc/etcd.env
ExecStart=/usr/local/bin/etcd
NotifyAccess=all
Restart=always
RestartSec=10s
LimitNOFILE=40000

[Install]
WantedBy=multi-user.target
FILE
	systemctl daemon-reload
	systemctl enable --quiet etcd.service
	systemctl start --no-block etcd.service
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

# etcd is what kubeadm must know of it.
etcd() {
	[ -n "${ETCD_URL:-}" ] || {
		echo "{local: {imageTag: $ETCD_TAG}}"
		return
	}
	set -- $ETCD_FILES
	echo "{external: {endpoints: [$(echo "$ETCD_URL" | sed 's/[^,][^,]*/"&"/g')], caFile: $1, certFile: $2, keyFile: $3}}"
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
${ENDPOINT:+controlPlaneEndpoint: $ENDPOINT}
networking: {podSubnet: 10.244.0.0/16}
apiServer:
  certSANs: [theirs.example.org]
  extraArgs: [{name: default-not-ready-toleration-seconds, value: "77"}]
etcd: $(etcd)
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
	kubeadm init --config /root/init.yaml --skip-phases preflight >/root/init.log 2>&1 || {
		tail -20 /root/init.log
		journalctl -u kubelet -n 20 -o cat --no-pager
		exit 1
	}
	export KUBECONFIG=/etc/kubernetes/admin.conf
	# CoreDNS does not start with no resolver to forward to.
	kubectl --namespace kube-system get configmap coredns -o yaml | sed '/^ *forward /,/}/d' | kubectl apply -f - >/dev/null 2>&1
	rm -f /root/init.yaml /root/init.log
}

token() { kubeadm token create; }

# key uploads what another host of the control plane needs, and prints what it is decrypted with.
key() {
	printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: %s\netcd: %s\n' "$VERSION" "$(etcd)" >/root/key.yaml
	kubeadm init phase upload-certs --upload-certs --config /root/key.yaml | tail -n 1
	rm -f /root/key.yaml
}

join() {
	{
		printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n'
		registration
		printf 'discovery: {bootstrapToken: {apiServerEndpoint: "%s", token: "%s", unsafeSkipCAVerification: true}}\n' "$SERVER" "$TOKEN"
		[ -z "${KEY:-}" ] || printf 'controlPlane: {certificateKey: "%s", localAPIEndpoint: {advertiseAddress: %s, bindPort: 6443}}\n' "$KEY" "$ADDRESS"
	} >/root/join.yaml
	kubeadm join --config /root/join.yaml --skip-phases preflight >/root/join.log 2>&1 || {
		tail -20 /root/join.log
		journalctl -u kubelet -n 20 -o cat --no-pager
		exit 1
	}
	rm -f /root/join.yaml /root/join.log
}

"$1"

# Six bare hosts become a highly available cluster. MASTERS, WORKERS and BALANCERS are hosts, each as name=address, ARTIFACTS has what a
# control plane host and a worker are sent by their roles' names, and VIP is the address of the API. VERSION, ETCD_TAG, DNS_REPOSITORY and
# DNS_TAG are those of the images, FLANNEL is its manifest, and KUBECONFIG is written. See node.sh, which comes before this.

# on runs a function for a host, given as name=address, as one of this role. It leaves the shell's variables alone.
on() (
	ROLE=$1 host=${2%%=*} ADDRESS=${2#*=} ARTIFACTS=$ARTIFACTS/$1
	shift 2
	"$@"
	disconnect
)

balancer() {
	peer=
	for b in $BALANCERS; do
		[ "$b" = "$host=$ADDRESS" ] || peer="$peer ${b#*=}"
	done
	servers=
	for m in $MASTERS; do
		servers="$servers
	server ${m%%=*} ${m#*=}:6443"
	done
	remote sudo sh -s <<END
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get -q -y update >/dev/null
apt-get -q -y install --no-install-recommends keepalived haproxy >/dev/null
cat >/etc/haproxy/haproxy.cfg <<'FILE'
global
	user haproxy
	group haproxy
	maxconn 8000

defaults
	mode tcp
	maxconn 8000
	timeout connect 2s
	retries 3
	option redispatch 1
	timeout client 4h
	timeout server 4h

frontend api
	bind *:6443
	default_backend api

backend api
	balance leastconn
	option httpchk
	http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host kubernetes
	http-check expect status 200
	timeout check 3s
	default-server check check-ssl verify none inter 2s fastinter 1s fall 2 rise 2 on-marked-down shutdown-sessions$servers
FILE
interface=\$(awk '\$2 == "00000000" { print \$1; exit }' /proc/net/route)
cat >/etc/keepalived/keepalived.conf <<FILE
global_defs {
	vrrp_version 3
	enable_script_security
	script_user nobody
}
vrrp_script proxy {
	script "/usr/bin/systemctl is-active --quiet haproxy"
	interval 1
	timeout 2
	fall 2
	rise 2
}
vrrp_instance api {
	state BACKUP
	nopreempt
	interface \$interface
	virtual_router_id 7
	priority 100
	advert_int 0.4
	unicast_src_ip $ADDRESS
	unicast_peer {
		$peer
	}
	virtual_ipaddress {
		$VIP/32 dev \$interface
	}
	track_script {
		proxy
	}
}
FILE
systemctl enable --quiet haproxy keepalived
systemctl restart haproxy keepalived
END
}

prepare() {
	programs
	{
		settings
		starting
	} | remote sudo sh -s
	images
}

begin() {
	remote sudo sh -s <<END
cat >/etc/kubernetes/init.yaml <<'FILE'
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  name: $host
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: Never
  kubeletExtraArgs:
  - {name: node-ip, value: $ADDRESS}
  - {name: resolv-conf, value: /etc/kubernetes/resolv.conf}
localAPIEndpoint: {advertiseAddress: $ADDRESS, bindPort: 6443}
patches: {directory: /etc/kubernetes/patches}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: $VERSION
controlPlaneEndpoint: $VIP:6443
networking: {podSubnet: 10.244.0.0/16}
etcd: {local: {imageTag: $ETCD_TAG}}
dns: {imageRepository: $DNS_REPOSITORY, imageTag: $DNS_TAG}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
FILE
END
	follow init --config /etc/kubernetes/init.yaml
	remote sudo cat /etc/kubernetes/admin.conf >"$KUBECONFIG"
	# The load balancers have checked the API server twice a little later.
	for try in $(seq 60); do
		"$KUBECTL" get --raw /readyz >/dev/null 2>&1 && break
		sleep 0.5
	done
	"$KUBECTL" create namespace kube-flannel
	"$KUBECTL" label namespace kube-flannel pod-security.kubernetes.io/enforce=privileged
	"$KUBECTL" apply -f "$FLANNEL"
	# Pods get no resolvers of the host's, as in the pipeline's clusters, and CoreDNS does not start with none to forward to.
	"$KUBECTL" --namespace kube-system get configmap coredns -o yaml | sed '/^ *forward /,/}/d' | "$KUBECTL" apply -f -
}

join() {
	[ "$ROLE" = worker ] || authorities "$1"
	joins=$(joining "$1")
	echo "$joins" | remote sudo sh -s
	follow join --config /etc/kubernetes/join.yaml
}

# All hosts are made ready at once.
jobs=
for b in $BALANCERS; do
	on balancer "$b" balancer &
	jobs="$jobs $!"
done
for m in $MASTERS; do
	on control-plane "$m" prepare &
	jobs="$jobs $!"
done
for w in $WORKERS; do
	on worker "$w" prepare &
	jobs="$jobs $!"
done
for job in $jobs; do
	wait "$job"
done

first=${MASTERS%% *}
on control-plane "$first" begin
jobs=
for w in $WORKERS; do
	on worker "$w" join "${first%%=*}" &
	jobs="$jobs $!"
done
for m in ${MASTERS#* }; do # etcd takes one after the other
	on control-plane "$m" join "${first%%=*}"
done
for job in $jobs; do
	wait "$job"
done

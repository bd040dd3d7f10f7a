# Deploys CoreDNS as kubeadm does, once. kubeadm itself cannot do so again: it wants to migrate the Corefile, and refuses where the
# CoreDNS that runs is newer than those whose Corefiles it knows. $1 is kubeadm's configuration.
# kubectl's cache would stay in root's home.
kubectl="/usr/local/bin/kubectl --cache-dir /run/kubernetes/kubectl --kubeconfig /etc/kubernetes/admin.conf --namespace kube-system"
# The Service is what it makes last.
service=$($kubectl get service kube-dns --ignore-not-found -o name) || exit
[ -z "$service" ] || exit 0
$kubectl delete deployment coredns --ignore-not-found || exit
exec /usr/local/bin/kubeadm init phase addon coredns --config "$1"

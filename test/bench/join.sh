# A host joins. Anyone who calls it waits for its Node. $1 is the host that began the control plane, $2 the one that joins. PROXY is
# kube-proxy's image and the name that the cluster's DaemonSet has for it. See node.sh, which comes before this.
server=$1
host=$2

programs
[ "$ROLE" = worker ] || authorities "$server"
joins=$(joining "$server")
{
	settings
	echo "$joins"
	starting
} | remote sudo sh -s
images
remote sudo ctr --namespace k8s.io images tag $PROXY
follow join --config /etc/kubernetes/join.yaml
disconnect

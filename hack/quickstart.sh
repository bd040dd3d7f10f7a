#!/usr/bin/env bash
# The quickstart: two hosts, one config.yaml, one command, and a proof. With "clean" it takes all of it away again.
set -euo pipefail
cd "$(dirname "$0")/.."
name=quickstart
state=.kubexm/$name
hosts=.kubexm/testhosts/$name
bundle=${KUBEXM_BUNDLE:-build/bundle}
testhosts() { hack/patience.sh "making test hosts" go run ./test/hosts/cmd/testhosts "$@"; }

if [ "${1:-}" = clean ]; then
	testhosts down --name $name
	rm -rf "$state" "$hosts"
	rmdir .kubexm/testhosts .kubexm 2>/dev/null || true
	echo "quickstart: the cluster and its hosts are gone"
	exit 0
fi

echo "== two hosts (containers with systemd and sshd) stand in for yours"
testhosts up --name $name --count 2 --subnet 10.77.0.0/24 --dir "$hosts"
echo "== kubexm create cluster"
bin/kubexm create cluster -f templates/quickstart/config.yaml --bundle "$bundle" --known-hosts "$hosts/known_hosts" --yes
echo "== the proof"
hack/patience.sh "proving it" go run ./test/smoke -kubeconfig "$state/kubeconfig" -bundle "$bundle" -ssh-config "$hosts/ssh_config"
cat <<TXT
== go on
  export KUBECONFIG=$state/kubeconfig PATH=\$PWD/$(echo "$bundle" | sed "s,^$PWD/,,")/kubernetes/v1.36.3/$(go env GOARCH):\$PWD/bin:\$PATH
  kubectl get nodes
  kubexm describe cluster $name
  kubexm delete cluster $name       # resets both hosts
  make quickstart-clean             # and takes the hosts away
TXT

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the script in $place, which makes the manifest of etcd, and sees the member back while no other member of the cluster is away: by
# the lock that those hold, too, who restart or maintain members, and only if the others keep quorum. How long that may take is for the
# next step to say. It comes after the texts of fail and etcd-lock.sh, and its environment is that of place.sh, and says besides:
#   back            a script that tells whether the member is back with its manifest (pod.sh), which is given a minute
#   spared          a script that fails where the cluster would lose its quorum without this host's member (etcd-spared.sh)
#   ssl             what this host goes to its member with
#   within          seconds that others may have the lock

export own="https://$host:2379"
export ETCDCTL_CACERT="$ssl/ca.pem" ETCDCTL_CERT="$ssl/admin-$name.pem" ETCDCTL_KEY="$ssl/admin-$name-key.pem"

# A member that is away already is restarted by nobody's leave: there is nobody to ask, and it may be this that brings it back.
if [ ! -e "$ETCDCTL_CERT" ] || ! answers "$own"; then
	exec /bin/sh -uc "$place" kubeadm
fi
alone='
leave=$spared /bin/sh -uc "$place" kubeadm || exit
for second in $(seq 60); do
	/bin/sh -uc "$back" kubeadm >/dev/null && exit
	sleep 1
done
:'
# By all members, so that the lock outlives a restart of this host's.
lockers=$(timeout 6 etcdctl --endpoints="$own" --dial-timeout=2s --command-timeout=4s member list 2>/dev/null |
	awk -F ', ' '$2 == "started" && $5 != "" { printf "%s%s", sep, $5; sep = "," }')
hold "$within" "${lockers:-$own}" "$alone"

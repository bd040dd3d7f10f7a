# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Says how etcd runs that others have made as the unit etcd.service of this host, and what it answers to who goes to it as the host's API
# server does. Only looks. Each line begins with a word that theirs.go knows. Its environment says:
#   host            the host's address as it stands in URLs
#   manifests       where the kubelet has the manifests of static pods
#   proc            where the kernel has processes
PATH=$PATH:/usr/local/bin:/usr/bin

[ ! -e "$manifests/etcd.yaml" ] || echo "pod $manifests/etcd.yaml"
echo "state $(systemctl show -p ActiveState --value etcd.service)"
pid=$(systemctl show -p MainPID --value etcd.service)
[ "${pid:-0}" -gt 0 ] || exit 0

echo "program $(readlink "$proc/$pid/exe")"
echo "version $("$proc/$pid/exe" --version 2>/dev/null | sed -n 's/^etcd Version: *//p' | head -n 1)"
systemctl show -p EnvironmentFiles etcd.service | sed -n 's/^EnvironmentFiles=\(.*\) (ignore_errors=[a-z]*)$/environment \1/p'
# Of its variables etcd's own alone: they are flags.
tr '\0' '\n' <"$proc/$pid/environ" | sed -n 's/^ETCD_[A-Z0-9_]*=/variable &/p'
tr '\0' '\n' <"$proc/$pid/cmdline" | sed 1d | sed 's/^/argument /'
{
	tr '\0' '\n' <"$proc/$pid/cmdline" | sed -n -e 's/^--\{0,1\}config-file=//p' -e '/^--\{0,1\}config-file$/{n;p;}'
	tr '\0' '\n' <"$proc/$pid/environ" | sed -n 's/^ETCD_CONFIG_FILE=//p'
} | head -n 1 | while read -r config; do
	echo "config $config"
	sed 's/^/line /' "$config"
done

of() { sed -n "s/^ *- --$1=//p" "$manifests/kube-apiserver.yaml" 2>/dev/null | head -n 1; }
ca=$(of etcd-cafile) cert=$(of etcd-certfile) key=$(of etcd-keyfile)
for file in "$ca" "$cert" "$key"; do echo "client $file"; done

# etcdctl logs a lot: of its errors only the last word is let through.
ctl() (
	exec 3>&1
	error=$(ETCDCTL_CACERT="$ca" ETCDCTL_CERT="$cert" ETCDCTL_KEY="$key" timeout 6 etcdctl --endpoints="https://$host:2379" --dial-timeout=2s \
		--command-timeout=4s -w json "$@" 2>&1 >&3 3>&-) && exit
	printf '%s\n' "$error" | sed -n 's/^Error: //p' | tail -n 1
	exit 1
)
command -v etcdctl >/dev/null || {
	echo "why there is no etcdctl in /usr/local/bin or /usr/bin to ask it with"
	exit 0
}
echo "asked $(date +%s%N)"
members=$(ctl member list) || {
	echo "why it does not say at https://$host:2379 who its members are: ${members:-it does not answer, or has no quorum}"
	exit 0
}
alarms=$(ctl alarm list) || {
	echo "why it does not say at https://$host:2379 which alarms there are: ${alarms:-it does not answer}"
	exit 0
}
printf 'members %s\nalarms %s\n' "$members" "$alarms"

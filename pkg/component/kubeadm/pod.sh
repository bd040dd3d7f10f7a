# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Whether a static pod whose manifest was placed in the change that is under way is Ready, and is the one of its manifest. Only looks. It
# comes after the text of ready.sh, and what the runtime's enter is. Its environment says, besides:
#   component       the static pod
#   change          a path that was made when the change began
#   logs            where the kubelet has Pods' logs
#   never           the exit code which says that it will not be: it has ended three times with its manifest

manifest=$dir/manifests/$component.yaml
[ -e "$manifest" ] || { echo "$manifest is absent"; exit 1; }
# One that was not placed is nothing to wait for: the API server that tells how it is may be what comes next.
[ "$manifest" -nt "$change" ] || exit 0

# The logs of the newest of its Pods: the kubelet makes their directory when it starts the component, when the one before has ended.
newest=$(ls -td "$logs/kube-system_$component-$name"_*/"$component" 2>/dev/null | head -n 1)

# What the API says of the Pods of its own server, and of its etcd, is a minute old: the kubelet tells it when it looks at the Pod the next
# time. They say themselves how they are.
was_started() { [ -n "$newest" ] && [ "$newest" -nt "$manifest" ]; }
api_is_ready() { api /readyz >/dev/null && was_started; }
etcd_is_healthy() {
	unset ETCDCTL_CACERT ETCDCTL_CERT ETCDCTL_KEY # etcdctl refuses to be told both ways
	set -- etcdctl
	# A host that was adopted gets its etcdctl only after this: the one in the pod is asked until then.
	command -v etcdctl >/dev/null || set -- $(enter etcd 2>/dev/null) etcdctl
	timeout 6 "$@" --endpoints="https://127.0.0.1:2379" --cacert="$dir/pki/etcd/ca.crt" --cert="$dir/pki/etcd/healthcheck-client.crt" \
		--key="$dir/pki/etcd/healthcheck-client.key" --dial-timeout=2s --command-timeout=4s endpoint health >/dev/null 2>&1 && was_started
}

case $component in
kube-apiserver) api_is_ready && exit ;;
etcd) etcd_is_healthy && exit ;;
*) is_ready "$component" "$(sed -n 's/^    kubexm.cluster.x-k8s.io\/manifest: "\(.*\)"$/\1/p' "$manifest")" && exit ;;
esac

# The name of its newest log is how often the container was started again. One of the Pod before does not count.
said= again=0
if [ -n "$newest" ]; then
	last=$(ls "$newest" | grep '^[0-9]*\.log$' | sort -n | tail -n 1)
	if [ -n "$last" ] && [ "$newest/$last" -nt "$manifest" ]; then again=${last%.log}; fi
	# Where it has just been started once more, the time before. What is no mere information counts; it may be followed by how to use it.
	all=$(ls "$newest" | grep '^[0-9]*\.log$' | sort -n | tail -n 2 | while read -r each; do cat "$newest/$each"; done | cut -d ' ' -f 4-)
	said=$(printf '%s\n' "$all" | grep -E '^[EF][0-9]{4} |^Error:|"level":"(error|fatal)"' | tail -n 1 | cut -c 1-300)
	[ -n "$said" ] || said=$(printf '%s\n' "$all" | grep . | tail -n 1 | cut -c 1-300)
fi
echo "$component is not; the last that it said: ${said:-nothing}"
[ "$again" -lt 3 ] || exit "$never"
exit 1

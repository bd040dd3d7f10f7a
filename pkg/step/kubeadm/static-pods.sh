# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the manifests of kubeadm's static pods what kubeadm makes of $config: etcd's, then the API server's, then those of who uses
# it, each when what comes before runs with its own. When one does not, all that were changed are put back. It may be cut at any
# line and run again. It comes after the text of ready.sh. Its environment says, besides:
#   config etcd     kubeadm's configuration, and whether kubeadm runs etcd here (local)
#   patience logs   seconds that a component may take to become Ready, and where the kubelet has Pods' logs

new=$dir/.kubexm-static-pods
changed=

# kubeadm writes what it would do into a directory, and nothing else.
render() {
	error=$(printf '%s\n' "$config" | KUBEADM_INIT_DRYRUN_DIR="$new" kubeadm init phase "$@" --dry-run --config /dev/stdin 2>&1 >/dev/null) ||
		fail "kubeadm cannot make the manifests ($*): $(printf '%s\n' "$error" | tail -n 1)"
}

# The manifest as it counts: without our marks. (The line "annotations:" may have come with one.)
plain() { grep -v -e '^    kubexm.io/' -e '^  annotations:$' "$1"; }

# Whether the component's manifest is to change.
differs() {
	[ -e "$new/$1.yaml" ] || return 1
	plain "$new/$1.yaml" >"$new/want"
	plain "$dir/manifests/$1.yaml" >"$new/have" 2>/dev/null
	! cmp -s "$new/want" "$new/have"
}

# Which other members etcd's manifest names is of the time at which the host joined. It stays: without it, a member that has lost
# its data would begin a cluster of its own.
keep_members() {
	[ -e "$dir/manifests/etcd.yaml" ] || return 0
	members=$(grep -e '^ *- --initial-cluster=' -e '^ *- --initial-cluster-state=' "$dir/manifests/etcd.yaml") || return 0
	printf '%s\n' "$members" >"$new/members"
	awk -v members="$new/members" '
		/^ *- --initial-cluster-state=/ { next }
		/^ *- --initial-cluster=/ { while ((getline line < members) > 0) print line; next }
		{ print }' "$new/etcd.yaml" >"$new/etcd" && mv "$new/etcd" "$new/etcd.yaml" || fail "$new cannot be written"
}

# Put the component's manifest in its place, with a mark by which its Pod is known.
place() {
	manifest=$dir/manifests/$1.yaml
	mark=$(sha256sum <"$new/$1.yaml" | cut -c 1-16)
	after='metadata:' line='  annotations:\n'
	if grep -q '^  annotations:$' "$new/$1.yaml"; then after='  annotations:' line=; fi
	awk -v after="$after" -v line="$line    kubexm.io/manifest: \"$mark\"" '
		{ print }
		$0 == after && !written { print line; written = 1 }
		END { exit !written }' "$new/$1.yaml" >"$new/$1.marked" || fail "kubeadm's manifest of $1 is not as it always was"
	chmod 0600 "$new/$1.marked"
	[ ! -e "$manifest" ] || [ -e "$new/old/$1.yaml" ] || cp -p "$manifest" "$new/old/$1.yaml" || fail "$new cannot be written"
	changed="$1 $changed"
	mv "$new/$1.marked" "$manifest" || fail "$manifest cannot be written"
}

put_back() {
	for each in $changed; do
		if [ -e "$new/old/$each.yaml" ]; then
			cp -p "$new/old/$each.yaml" "$new/back" && mv "$new/back" "$dir/manifests/$each.yaml"
		else
			rm -f "$dir/manifests/$each.yaml"
		fi
	done
}

# The newest log of the component, or nothing: its name is how often the container was started again.
newest_log() {
	logged=$(ls -td "$logs/kube-system_$1-$name"_*/ 2>/dev/null | head -n 1)
	[ -n "$logged" ] || return 0
	last=$(ls "$logged$1" 2>/dev/null | grep '^[0-9]*\.log$' | sort -n | tail -n 1)
	[ -z "$last" ] || echo "$logged$1/$last"
}

# Whether the component runs with its mark ($2), or is seen not to: it has ended three times.
settled() {
	! is_ready "$1" "$2" || return 0
	log=$(newest_log "$1")
	again=${log##*/} again=${again%.log}
	# Those of the Pod before do not count.
	[ "${again:-0}" -ge 3 ] && [ "$log" -nt "$dir/manifests/$1.yaml" ]
}

rm -rf "$new"
trap 'rm -rf "$new"' EXIT
mkdir -m 0700 "$new" "$new/old" || fail "$new cannot be made"
render control-plane all
[ "$etcd" != local ] || { render etcd local; keep_members; }
for components in etcd kube-apiserver 'kube-controller-manager kube-scheduler'; do
	placed=
	for component in $components; do
		if differs "$component"; then
			place "$component"
			placed="$placed $component:$mark"
		fi
	done
	for component in $placed; do
		mark=${component#*:} component=${component%:*}
		await "$patience" settled "$component" "$mark"
		is_ready "$component" "$mark" && continue
		said= log=$(newest_log "$component")
		[ -z "$log" ] || said=$(tail -n 3 "$log" | cut -d ' ' -f 4- | cut -c 1-300)
		put_back
		fail "$component does not become Ready with its new manifest, so the manifests were put back; the last that it said: ${said:-nothing}"
	done
done

# What is in the cluster is for those who join, and for people.
if [ -e "$dir/admin.conf" ]; then
	upload() {
		error=$(printf '%s\n' "$config" | kubeadm init phase upload-config all --config /dev/stdin --kubeconfig "$dir/admin.conf" 2>&1 >/dev/null)
	}
	await 60 upload || fail "kubeadm cannot put its configuration into the cluster: $(printf '%s\n' "$error" | tail -n 1)"
fi

# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the manifests of kubeadm's static pods what kubeadm makes of $config: etcd's, then the API server's, then those of who uses
# it, each when what comes before runs with its own. When one does not, all that were changed are put back. It may be cut at any
# line and run again. It comes after the texts of ready.sh, turn.sh and manifests.sh. Its environment says, besides:
#   config          kubeadm's configuration
#   patience logs   seconds that a component may take to become Ready, and where the kubelet has Pods' logs

new=$dir/.kubexm-static-pods
changed=

# kubeadm writes what it would do into a directory, and nothing else.
render() {
	error=$(printf '%s\n' "$config" | KUBEADM_INIT_DRYRUN_DIR="$new" kubeadm init phase "$@" --dry-run --config /dev/stdin 2>&1 >/dev/null) ||
		fail "kubeadm cannot make the manifests ($*): $(printf '%s\n' "$error" | tail -n 1)"
}

# Whether the component's manifest is to change, or has changed in a run that was cut before the component was seen to run with it.
differs() {
	[ ! -e "$copies/$1.yaml" ] || is_kept "$1" || return 0
	plain "$new/$1.yaml" >"$new/want"
	plain "$dir/manifests/$1.yaml" >"$new/have" 2>/dev/null
	! cmp -s "$new/want" "$new/have"
}

# Which other members etcd's manifest names is of the time at which the host joined. It stays: without it, a member that has lost
# its data would begin a cluster of its own.
keep_members() {
	members=
	for from in "$copies/etcd.yaml" "$dir/manifests/etcd.yaml"; do
		members=$(grep -e '^ *- --initial-cluster=' -e '^ *- --initial-cluster-state=' "$from" 2>/dev/null) && break
	done
	[ -n "$members" ] || return 0
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
	before=$copies/$1.yaml
	[ -e "$before" ] || before=$manifest
	[ ! -e "$before" ] || [ -e "$new/old/$1.yaml" ] || cp -p "$before" "$new/old/$1.yaml" || fail "$new cannot be written"
	changed="$1 $changed"
	keep_turn
	mv "$new/$1.marked" "$manifest" || fail "$manifest cannot be written"
}

put_back() {
	is_my_turn || : # it lasts long enough where nobody can be told
	for each in $changed; do
		if [ -e "$new/old/$each.yaml" ]; then
			cp -p "$new/old/$each.yaml" "$new/back" && mv "$new/back" "$dir/manifests/$each.yaml"
		else
			rm -f "$dir/manifests/$each.yaml"
		fi
	done
	# The next host's turn comes when the API server is back here.
	case $changed in *kube-apiserver*) await "$patience" api_answers ;; esac
}

api_answers() { api /readyz >/dev/null; }

# The newest log of the component, or nothing: its name is how often the container was started again.
newest_log() {
	logged=$(ls -td "$logs/kube-system_$1-$name"_*/ 2>/dev/null | head -n 1)
	[ -n "$logged" ] || return 0
	last=$(ls "$logged$1" 2>/dev/null | grep '^[0-9]*\.log$' | sort -n | tail -n 1)
	[ -z "$last" ] || echo "$logged$1/$last"
}

# The last that the component said: where it has just been started once more, the time before.
last_words() {
	log=$(newest_log "$1") of=${log%/*}
	[ -n "$log" ] || return 0
	ls "$of" | grep '^[0-9]*\.log$' | sort -n | tail -n 2 | while read -r each; do cat "$of/$each"; done |
		tail -n 3 | cut -d ' ' -f 4- | cut -c 1-300
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
case $components in *etcd*)
	render etcd local
	keep_members
	;;
esac
for at_once in etcd kube-apiserver 'kube-controller-manager kube-scheduler'; do
	placed=
	for component in $at_once; do
		case " $components " in *" $component "*) ;; *) continue ;; esac
		if differs "$component"; then
			place "$component"
			placed="$placed $component:$mark"
		fi
	done
	for component in $placed; do
		mark=${component#*:} component=${component%:*}
		is_my_turn || :
		await "$patience" settled "$component" "$mark"
		is_ready "$component" "$mark" && continue
		said=$(last_words "$component")
		put_back
		fail "$component does not become Ready with its new manifest, so the manifests were put back; the last that it said: ${said:-nothing}"
	done
done
keep

# What is in the cluster is for those who join, and for people.
if [ -e "$dir/admin.conf" ]; then
	upload() {
		error=$(printf '%s\n' "$config" | kubeadm init phase upload-config all --config /dev/stdin --kubeconfig "$dir/admin.conf" 2>&1 >/dev/null)
	}
	await 60 upload || fail "kubeadm cannot put its configuration into the cluster: $(printf '%s\n' "$error" | tail -n 1)"
fi

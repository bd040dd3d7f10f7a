# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the manifest of one static pod what kubeadm makes of $config, with a mark by which its Pod is another one, and keeps a copy of it. Where
# the component has that already, and nothing that it reads was renewed since, the manifest stays as it is. It may be cut at any line and
# run again. Its environment says:
#   dir             where Kubernetes' files are
#   component       the static pod
#   phase config    kubeadm's phase that makes its manifest, and its configuration; no phase leaves the manifest as it is, but for the mark
#   reads           what the component reads when it starts, of what is renewed
#   leave           a script that fails where the component must not be restarted now; or nothing

manifest=$dir/manifests/$component.yaml copies=$dir/kubexm-manifests
copy=$copies/$component.yaml
new=$dir/.kubexm-$component

# The manifest as it counts: without our marks. (The line "annotations:" may have come with one.)
plain() { grep -v -e '^    kubexm.cluster.x-k8s.io/' -e '^  annotations:$' "$1"; }

# kubeadm writes what it would do into a directory, and nothing else.
render() {
	error=$(printf '%s\n' "$config" | KUBEADM_INIT_DRYRUN_DIR="$new" kubeadm init phase $phase --dry-run --config /dev/stdin 2>&1 >/dev/null) ||
		fail "kubeadm cannot make the manifest of $component: $(printf '%s\n' "$error" | grep -v '^To see the stack trace' | tail -n 1)"
}

# Which other members etcd's manifest names is of the time at which the host joined. It stays: without it, a member that has lost
# its data would begin a cluster of its own.
keep_members() {
	members=
	for from in "$copy" "$manifest"; do
		members=$(grep -e '^ *- --initial-cluster=' -e '^ *- --initial-cluster-state=' "$from" 2>/dev/null) && break
	done
	[ -n "$members" ] || return 0
	printf '%s\n' "$members" >"$new/members"
	awk -v members="$new/members" '
		/^ *- --initial-cluster-state=/ { next }
		/^ *- --initial-cluster=/ { while ((getline line < members) > 0) print line; next }
		{ print }' "$new/etcd.yaml" >"$new/etcd" && mv "$new/etcd" "$new/etcd.yaml" || fail "$new cannot be written"
}

# Whether the component was started with what it reads.
is_current() {
	for file in $reads; do [ ! "$file" -nt "$manifest" ] || return; done
}

keep() {
	mkdir -p -m 0700 "$copies" && cp -p "$manifest" "$copies/.$component.yaml" && mv "$copies/.$component.yaml" "$copy" ||
		fail "$manifest cannot be copied to $copies"
}

rm -rf "$new"
trap 'rm -rf "$new"' EXIT
mkdir -m 0700 "$new" || fail "$new cannot be made"
want=$new/$component.yaml
if [ -n "$phase" ]; then
	render
	[ "$component" != etcd ] || keep_members
	kept=yes
else
	cp -p "$manifest" "$want" || fail "$manifest cannot be read"
	# A manifest that somebody has changed is for others to notice still.
	if cmp -s "$manifest" "$copy"; then kept=yes; else kept=; fi
fi
plain "$want" >"$new/want"
plain "$manifest" >"$new/have" 2>/dev/null
if ! cmp -s "$new/want" "$new/have" || ! is_current; then
	[ -z "${leave:-}" ] || /bin/sh -uc "$leave" kubeadm || exit
	# Each time another: the kubelet may not have seen what was there in between.
	mark=$(date +%s.%N)
	grep -v '^    kubexm.cluster.x-k8s.io/' "$want" >"$new/bare"
	after='metadata:' line='  annotations:\n'
	if grep -q '^  annotations:$' "$new/bare"; then after='  annotations:' line=; fi
	awk -v after="$after" -v line="$line    kubexm.cluster.x-k8s.io/manifest: \"$mark\"" '
		{ print }
		$0 == after && !written { print line; written = 1 }
		END { exit !written }' "$new/bare" >"$new/marked" ||
		fail "$manifest is not as kubeadm writes it: restart $component yourself, then touch that file"
	chmod 0600 "$new/marked" && mv "$new/marked" "$manifest" || fail "$manifest cannot be written"
	# Where the clock was set back since, it would be older than what it reads.
	for file in $reads; do [ ! "$file" -nt "$manifest" ] || touch -r "$file" "$manifest"; done
fi
[ -z "$kept" ] || keep

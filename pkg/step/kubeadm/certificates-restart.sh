# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Restarts, one after the other, the components of which certificates were renewed that they read when they start. It may be cut at
# any line and run again: a manifest that is older than its certificates says what is to be done still.

# Restart a component: the kubelet does that when its manifest says something else. There is always a manifest, old or new, so
# a component is never left stopped. Its time remains that of before until the component is Ready.
restart() {
	manifest=$dir/manifests/$1.yaml new=$dir/.kubexm-$1-$$.yaml
	mark=$(cat $(files "$1") | grep -v client-key-data | sha256sum | cut -c 1-16)
	if ! grep -q "^    kubexm.io/certificates: \"$mark\"$" "$manifest"; then
		after='metadata:' line='  annotations:\n'
		if grep -q '^  annotations:$' "$manifest"; then after='  annotations:' line=; fi
		cp -p "$manifest" "$new" || fail "$new cannot be written"
		awk -v after="$after" -v line="$line    kubexm.io/certificates: \"$mark\"" '
			/^    kubexm.io\/certificates: / { next }
			{ print }
			$0 == after && !written { print line; written = 1 }
			END { exit !written }' "$manifest" >"$new" ||
			fail "$manifest is not as kubeadm writes it: restart $1 yourself, then touch that file"
		keep_turn
		touch -r "$manifest" "$new" && mv "$new" "$manifest" || fail "$manifest cannot be written"
	fi
	await "$patience" is_ready "$1" "$mark" ||
		fail "$1 has new certificates and was restarted, but is not Ready; look at: kubectl -n kube-system describe pod $1-$name"
	touch "$manifest"
	# Where the clock was set back since, that is not enough.
	for file in $(files "$1"); do [ ! "$file" -nt "$manifest" ] || touch -r "$file" "$manifest"; done
}

for component in $(outdated); do restart "$component"; done

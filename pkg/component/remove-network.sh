# Removes what pods' networking left in the kernel: what is of the kubelet (chains KUBE-) and of the standard plugins (cni0, CNI-), links that
# users' own installations are known by (kube-bridge, nodelocaldns), and what components say that they leave: $links, $chains and $sets (what
# names begin with) are words, $tables has commas between "family name". Runs on a reset, when nothing of ours runs any more. Rules that
# others made are kept.
for link in cni0 $links kube-bridge nodelocaldns; do ip link delete "$link" 2>/dev/null; done
for link in $(ip -o link show type veth 2>/dev/null | sed -n 's/^[0-9]*: \(veth[0-9a-f]\{8\}\)@.*/\1/p'); do ip link delete "$link" 2>/dev/null; done
for ns in $(ip netns list 2>/dev/null | sed -n 's/^\(cni-[0-9a-f-]*\).*/\1/p'); do ip netns delete "$ns" 2>/dev/null; done
ours=
for chain in KUBE- CNI- $chains; do ours="$ours${ours:+|}$chain"; done
for family in iptables ip6tables; do
	for variant in nft legacy; do
		save=$family-$variant-save restore=$family-$variant-restore
		command -v "$save" >/dev/null 2>&1 || continue
		rules=$($save 2>/dev/null) || continue
		if printf '%s\n' "$rules" | grep -q -E "[: ]($ours)"; then
			printf '%s\n' "$rules" | grep -v -E "[: ]($ours)" | $restore
		fi
	done
done
if command -v nft >/dev/null 2>&1; then
	printf '%s\n' "$tables" | tr , '\n' | while read -r family table; do
		[ -n "$table" ] && nft delete table "$family" "$table" 2>/dev/null
	done
fi
if [ -n "$sets" ] && command -v ipset >/dev/null 2>&1; then
	for prefix in $sets; do
		for set in $(ipset list -name 2>/dev/null | grep "^$prefix"); do ipset destroy "$set" 2>/dev/null; done
	done
fi
exit 0

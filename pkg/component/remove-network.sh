# Removes what pods' networking left in the kernel: links, packet filter chains, sets and tables of kube-proxy and the standard
# plugins, and those of the network: $links and $chains (what names begin with) are words, $tables has commas between "family name".
# Runs on a reset, when nothing of ours runs any more. Rules that others made are kept.
for link in cni0 $links kube-ipvs0 kube-bridge nodelocaldns; do ip link delete "$link" 2>/dev/null; done
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
	printf '%s\n' 'ip kube-proxy,ip6 kube-proxy' "$tables" | tr , '\n' | while read -r family table; do
		[ -n "$table" ] && nft delete table "$family" "$table" 2>/dev/null
	done
fi
exit 0

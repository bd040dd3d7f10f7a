# Removes what pods' networking left in the kernel: links, packet filter chains and sets of kube-proxy, the portmap
# plugin and flannel. Runs on a reset, when nothing of ours runs any more. Rules that others made are kept.
for link in cni0 flannel.1 flannel-v6.1 kube-ipvs0 kube-bridge nodelocaldns; do ip link delete "$link" 2>/dev/null; done
for link in $(ip -o link show type veth 2>/dev/null | sed -n 's/^[0-9]*: \(veth[0-9a-f]\{8\}\)@.*/\1/p'); do ip link delete "$link" 2>/dev/null; done
for ns in $(ip netns list 2>/dev/null | sed -n 's/^\(cni-[0-9a-f-]*\).*/\1/p'); do ip netns delete "$ns" 2>/dev/null; done
for family in iptables ip6tables; do
	for variant in nft legacy; do
		save=$family-$variant-save restore=$family-$variant-restore
		command -v "$save" >/dev/null 2>&1 || continue
		rules=$($save 2>/dev/null) || continue
		case $rules in
		*KUBE-* | *CNI-* | *FLANNEL-*)
			printf '%s\n' "$rules" | grep -v -e '[: ]KUBE-' -e '[: ]CNI-' -e '[: ]FLANNEL-' -e 'flanneld' | $restore ;;
		esac
	done
done
if command -v nft >/dev/null 2>&1; then
	for table in 'ip kube-proxy' 'ip6 kube-proxy' 'ip flannel-ipv4' 'ip6 flannel-ipv6'; do nft delete table $table 2>/dev/null; done
fi
exit 0

# Removes what calico left in the kernel that no name tells: pods' interfaces, routes of its own protocol (80), directories of its eBPF mode
# if they are empty, rules of the packet filter, and the sets of addresses that these use, which go only after them. Rules of others are
# kept.
for link in $(ip -o link show type veth 2>/dev/null | sed -n 's/^[0-9]*: \(cali[0-9a-f]\{11\}\)@.*/\1/p'); do ip link delete "$link" 2>/dev/null; done
for family in -4 -6; do ip $family route flush proto 80 2>/dev/null; done
rmdir /sys/fs/bpf/tc/globals /sys/fs/bpf/tc 2>/dev/null
for family in iptables ip6tables; do
	for variant in nft legacy; do
		save=$family-$variant-save restore=$family-$variant-restore
		command -v "$save" >/dev/null 2>&1 || continue
		rules=$($save 2>/dev/null) || continue
		if printf '%s\n' "$rules" | grep -q -E '[: "]cali[-:]'; then
			printf '%s\n' "$rules" | grep -v -E '[: "]cali[-:]' | $restore
		fi
	done
done
if command -v ipset >/dev/null 2>&1; then
	for set in $(ipset list -name 2>/dev/null | grep '^cali[46]0'); do ipset destroy "$set" 2>/dev/null; done
fi

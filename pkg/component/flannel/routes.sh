# Removes the routes by which flannel's backend host-gw reaches pods of other hosts: they lead into the pods' networks, which are the
# cluster's own, by other hosts, and have no link of flannel's to go with. flannel wrote which networks these are.
routes() {
	ip "$1" route show root "$2" 2>/dev/null | grep ' via ' | while read -r route; do ip "$1" route delete $route 2>/dev/null; done
}
if [ -r /run/flannel/subnet.env ]; then
	while IFS='=' read -r name network; do
		case $name in
		FLANNEL_NETWORK) routes -4 "$network" ;;
		FLANNEL_IPV6_NETWORK) routes -6 "$network" ;;
		esac
	done </run/flannel/subnet.env
fi

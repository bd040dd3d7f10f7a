# Undo what the record says. Who made it is logged in, so users that were made go when that connection has ended, by $gone.
[ -d "$D" ] || exit 0
trap "" HUP PIPE
hold
cd "$D" 2>/dev/null || exit 0
rm -f nonce of birth* host*
serve
rm -f "$SUDO" "$SUDO.part" /run/cluster-api/bootstrap-success.complete
bar
[ ! -f made ] || tac made | while read -r path; do
	if [ -d "$path" ]; then rmdir "$path" 2>/dev/null || :; elif [ ! -s "$path" ]; then rm -f "$path"; fi
done
if [ ! -s users ]; then
	rm -rf "$D"
	rmdir /etc/kubexm 2>/dev/null || :
	exit 0
fi
: >closing
if [ ! -d /run/systemd/system ]; then
	setsid /bin/sh -c "$gone" >/dev/null 2>&1 </dev/null 9<&- &
elif ! systemctl -q is-active kubexm-door-close; then
	systemd-run -q --collect --unit kubexm-door-close --description "Remove users made for a Machine" /bin/sh -c "$gone"
fi

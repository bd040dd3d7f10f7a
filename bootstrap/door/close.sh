# Undo what the record says. Who made it is logged in, so users that were made go when that connection has ended, by $gone.
[ -d "$D" ] || exit 0
trap "" HUP PIPE
hold
cd "$D" 2>/dev/null || exit 0
# What Ignition has put there would open the door again at the next start, if it has not succeeded yet.
rm -f /etc/kubexm/bootstrap.sh
unit=/etc/systemd/system/kubexm-bootstrap.service
if [ -f $unit ]; then
	systemctl -q disable --now kubexm-bootstrap.service || :
	rm -f $unit
	systemctl daemon-reload || :
fi
# sshd would refuse below what it refuses now, when nobody gets in any more to repair it.
[ ! -f /etc/debian_version ] || mkdir -pm 755 /run/sshd
"$sshd" -t || fail "sshd refuses its configuration: see above"
# First of all that others get in by: whoever is refused after a cut knows by that that nobody is let in.
bar
hangup
rm -f nonce of birth* host*
serve
rm -f "$SUDO" "$SUDO.part" /run/cluster-api/bootstrap-success.complete
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

# What the scripts of the door have in common. They run in D, the record of what was made. Each thing is written down before it is made:
#   of        whose door is being opened              nonce      whose door is open
#   users     users that were made                    made       files and directories that were made
#   file      the authorized_keys that was changed    lines      the lines that it got
#   birth     the host key of the bootstrap data      host       the one that was made here, and host.pub
#   was       what sshd's configuration was           reload     that sshd has not read it yet
#   closing   that the door is closed but for its users
# The file of sudo's, that of sshd's, a block in sshd's own and the unit that connects to the manager have names that are ours alone.
D=/etc/kubexm/door
SUDO=/etc/sudoers.d/90-kubexm
CONF=/etc/ssh/sshd_config
DROP=$CONF.d/10-kubexm.conf
umask 077
PATH=$PATH:/usr/sbin:/sbin

fail() { echo "kubexm: $1" >&2; exit 1; }
said() { cat "$1" 2>/dev/null || :; }
note() { [ -e "$1" ] || echo "$1" >>made; }

# Be the only one that changes the door.
hold() {
	sshd=$(command -v sshd) || fail "no sshd: install openssh-server"
	exec 9</etc/ssh
	flock 9
}

# Put what the rest of the words print into the file $1, at once. It keeps its owner and its mode.
swap() {
	new=$1.kubexm old=$1
	shift
	rm -f "$new"
	cp -p "$old" "$new" 2>/dev/null || install -m 0644 /dev/null "$new"
	"$@" >"$new"
	mv -f "$new" "$old"
}

# sshd's configuration without what is ours.
bare() { sed "/^# begin kubexm/,/^# end kubexm/d" $CONF; }
render() {
	if [ $place = $DROP ]; then cat conf; return; fi
	[ ! -s conf ] || { echo "# begin kubexm"; cat conf; echo "# end kubexm"; }
	bare
}

# Have sshd show the keys that there are of ours, beside those that it shows anyway.
serve() {
	# Debian's does not even read its configuration without.
	[ ! -f /etc/debian_version ] || mkdir -pm 755 /run/sshd
	for k in birth host; do
		[ ! -f $k ] || echo "HostKey $D/$k"
	done >conf
	# The first HostKey there is takes the default ones away, so that they are named too, unless others name theirs.
	if [ -s conf ] && ! { bare; find $CONF.d -name "*.conf" ! -path $DROP -exec cat {} + 2>/dev/null; } | grep -qi "^\s*HostKey\b"; then
		# Before one of them is made, sshd does not say which they will be.
		only=-f all=$($sshd -T 2>/dev/null | sed -n "s/^hostkey //p")
		[ -n "$all" ] || { only=-n; all=$(printf "/etc/ssh/ssh_host_%s_key " rsa ecdsa ed25519); }
		for k in $all; do
			[ ! $only "$k" ] || [ "${k#$D}" != "$k" ] || echo "HostKey $k"
		done >>conf
	fi
	place=$CONF
	if grep -qi "^\s*Include\s.*sshd_config\.d/" $CONF; then
		place=$DROP
		note $CONF.d
		mkdir -pm 755 $CONF.d
	fi
	render >next
	[ -f $place ] && now=$place || now=/dev/null
	if [ "$(cat next)" != "$(cat $now)" ]; then
		cat $now >was
		: >reload
		swap $place cat next
	fi
	# No more often than needed: sshd refuses connections for a moment.
	[ -f reload ] || return 0
	[ -s $place ] || rm -f $place
	if ! $sshd -t; then
		[ ! -f was ] || swap $place cat was
		[ -s $place ] || rm -f $place
		fail "sshd refuses its configuration, which was restored: see above"
	fi
	if [ -d /run/systemd/system ]; then
		for u in ssh sshd; do
			! systemctl -q is-active $u || { systemctl reload $u; break; }
		done
	elif [ -s /run/sshd.pid ]; then
		kill -HUP $(cat /run/sshd.pid) || :
	fi
	rm -f was reload
}

# Let nobody in any more with what was let in. grep says 1 if nothing is left.
without() { grep -vxF -f lines "$file" || [ $? = 1 ]; }
bar() {
	file=$(said file)
	[ ! -s lines ] || [ ! -f "$file" ] || swap "$file" without
	rm -f lines
}

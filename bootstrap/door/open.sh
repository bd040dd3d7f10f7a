# The bootstrap data: let $user in with $line, as root if $sudo, and show the host key $birth. $of says whose Machine this is.
[ "$(id -u)" = 0 ] || fail "bootstrap data needs root"
hold
mkdir -pm 755 /etc/kubexm
mkdir -p $D
cd $D
rm -f closing
if [ "$(said of)" != "$of" ]; then
	# Another Machine had the host.
	rm -f nonce
	bar
	: >reload
	rm -f birth* host*
	echo "$of" >of
fi
if ! id -u "$user" >/dev/null 2>&1; then
	echo "$user" >>users
	# Not locked, which sshd without PAM refuses, and with no password either.
	useradd -m -s /bin/bash -p "*" "$user"
fi
home=$(getent passwd "$user" | cut -d: -f6)
group=$(id -gn "$user")
ssh=$home/.ssh
for d in "$home" "$ssh"; do
	[ -d "$d" ] || { note "$d"; install -d -m 700 -o "$user" -g "$group" "$d"; }
done
keys=$(readlink -f "$ssh/authorized_keys")
# A user's link is not to have root make a file elsewhere that is the user's.
[ "${keys#"$(readlink -f "$home")"/}" != "$keys" ] || fail "$keys is not in $home"
[ -f "$keys" ] || { note "$keys"; install -m 600 -o "$user" -g "$group" /dev/null "$keys"; }
# Another user, or another key: what is not wanted any more goes.
if [ "$(said file)" != "$keys" ] || said lines | grep -qvxF -- "$line"; then
	bar
	echo "$keys" >file
fi
[ -z "$(tail -c 1 "$keys")" ] || echo >>"$keys"
grep -qxF -- "$line" "$keys" || { echo "$line" >>lines; echo "$line" >>"$keys"; }
restorecon -R "$ssh" 2>/dev/null || :
if [ -n "$sudo" ]; then
	command -v sudo >/dev/null || fail "no sudo: install it, or log in as root"
	echo "$user ALL=(ALL) NOPASSWD:ALL" >$SUDO.part
	chmod 440 $SUDO.part
	mv -f $SUDO.part $SUDO
else
	rm -f $SUDO $SUDO.part
fi
# Once the host has a key of its own, this one does not come back.
if [ -n "$birth" ] && [ ! -f host ] && [ ! -f birth ]; then
	: >reload
	echo "$birth" >birth.part
	mv birth.part birth
fi
serve

#!/bin/sh
# Turns a fresh Debian root file system ($1) into a test host: accounts, sshd,
# and no service that cannot work in a container.
set -eu
root=$1
here=$(dirname "$0")

install -m 0755 "$here/testhost-init" "$root/usr/local/sbin/testhost-init"

# One account per way of becoming root that users have. Passwords are locked;
# sudopw gets one when a pool is started with it.
add_user() {
	chroot "$root" useradd --create-home --shell /bin/bash "$1"
	install -d -m 0700 "$root/home/$1/.ssh"
	chroot "$root" chown "$1:$1" "/home/$1/.ssh"
}
add_user ops
add_user sudopw
add_user nosudo
install -d -m 0700 "$root/root/.ssh"
chroot "$root" usermod --append --groups sudo sudopw
printf 'ops ALL=(ALL:ALL) NOPASSWD:ALL\n' >"$root/etc/sudoers.d/ops"
chmod 0440 "$root/etc/sudoers.d/ops"

# Identity is made at the first boot, so that no two hosts share it.
rm -f "$root"/etc/ssh/ssh_host_*
: >"$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id"

# mmdebstrap copies these from the machine that builds.
: >"$root/etc/hostname"
: >"$root/etc/hosts"
rm -f "$root/etc/resolv.conf"
: >"$root/etc/resolv.conf"

# All hosts share the machine's clock: chronyd reports it and never sets it (-x).
printf 'DAEMON_OPTS="-F 1 -x"\n' >"$root/etc/default/chrony"
sed -i '/^pool /d' "$root/etc/chrony/chrony.conf"
printf 'local stratum 10\n' >"$root/etc/chrony/conf.d/testhost.conf"

# Consoles, disks and the machine's debug file systems are not the host's own;
# apt's timers would hold the package lock at random moments.
for unit in \
	apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
	e2scrub_all.timer e2scrub_reap.service fstrim.timer \
	getty.target console-getty.service systemd-pstore.service \
	sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
	sys-fs-fuse-connections.mount dev-hugepages.mount \
	systemd-remount-fs.service systemd-update-utmp.service systemd-update-utmp-runlevel.service; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done

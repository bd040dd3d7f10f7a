#!/bin/sh
# Makes of a test host's root file system ($1), which is Debian's, one of the Red Hat family, as far as programs of Debian go: its
# packages are rpm's and dnf's, from a repository that the image carries; there is no dpkg and no apt. It says that it is Rocky Linux.
set -eu
root=$1
here=$(dirname "$0")
APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
LC_ALL=C
export APT_CONFIG LC_ALL

work=$root/srv/build
mkdir -p "$work/debs" "$root/srv/rpms"
cp "$here/repository.txt" "$here/base.txt" "$here/packages.sh" "$work"

# What is to be in the repository, with what it depends on.
names=$(sed -n '/^#/d; s/ .*//p' "$here/repository.txt")
cd "$work/debs"
wanted=$(apt-get -q -q -s -y --no-install-recommends install $names | sed -n 's/^Inst \([^ ]*\).*/\1/p')
apt-get -q -q -o APT::Sandbox::User=root download $wanted >&2
cd /
chroot "$root" sh -eu /srv/build/packages.sh
rm -rf "$work"

mkdir -p "$root/etc/yum.repos.d" "$root/etc/dnf/vars" "$root/etc/sysconfig"
printf '[testhost]\nname=What test hosts may install\nbaseurl=file:///srv/rpms\nenabled=1\ngpgcheck=0\n' >"$root/etc/yum.repos.d/testhost.repo"
echo 9 >"$root/etc/dnf/vars/releasever"
rm -f "$root/etc/os-release"
cat >"$root/etc/os-release" <<END
NAME="Rocky Linux"
VERSION="9.5 (simulated by Debian's programs)"
ID="rocky"
ID_LIKE="rhel centos fedora"
VERSION_ID="9.5"
PLATFORM_ID="platform:el9"
PRETTY_NAME="Rocky Linux 9.5 (simulated by Debian's programs)"
END

# Accounts of the family's packages, which their own scripts would make.
chroot "$root" useradd --system --no-create-home --home-dir /var/lib/nginx --shell /sbin/nologin nginx
chroot "$root" useradd --system --no-create-home --home-dir /var/lib/haproxy --shell /sbin/nologin haproxy

# Docker has configured the host's link, and given it its resolv.conf. Devices are the machine's, not the container's.
printf '[main]\ndns=none\nno-auto-default=*\n\n[keyfile]\nunmanaged-devices=interface-name:eth0\n' \
	>"$root/etc/NetworkManager/conf.d/10-testhost.conf"
for unit in systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udev-trigger.service \
	systemd-udev-settle.service NetworkManager-wait-online.service; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done

# mmdebstrap takes its own files away itself, and wants them to be there.
find "$root/etc/apt" "$root/etc/dpkg" -type f ! -name '*mmdebstrap' -delete
rm -rf "$root/usr/lib/apt" "$root/usr/lib/dpkg" "$root/usr/share/dpkg" \
	"$root"/usr/bin/apt* "$root"/usr/bin/dpkg* "$root"/usr/sbin/dpkg* "$root"/usr/bin/deb-systemd-* "$root"/usr/sbin/update-rc.d
# What mmdebstrap does last needs these two to be there.
rm -rf "$root"/var/lib/dpkg/*
: >"$root/var/lib/dpkg/status"

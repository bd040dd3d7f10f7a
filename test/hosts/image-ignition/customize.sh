#!/bin/sh
# Puts Ignition into a test host's root file system ($1) where a test can run it: there is no initramfs whose stages would. Debian's does
# not know that its hosts have no SELinux.
set -eu
ln -s /usr/lib/dracut/modules.d/30ignition/ignition "$1/usr/local/sbin/ignition"
mkdir -p "$1/etc/selinux"
printf 'SELINUX=disabled\nSELINUXTYPE=targeted\n' >"$1/etc/selinux/config"
printf '#!/bin/sh\n' >"$1/usr/local/sbin/setfiles"
chmod 0755 "$1/usr/local/sbin/setfiles"

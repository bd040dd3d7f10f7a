#!/bin/sh
# Makes of a test host's root file system ($1) a cloud image: at each boot cloud-init looks for a config drive, whose content is in
# /var/lib/cloud/seed/config_drive here, and does nothing without one. The container's engine looks after the network and the disks.
set -eu
cat >"$1/etc/cloud/cloud.cfg.d/90_testhost.cfg" <<'END'
# With one alone, that would be taken without being looked for.
datasource_list: [ConfigDrive, NoCloud]
network: {config: disabled}
growpart: {mode: "off"}
resize_rootfs: false
locale: C.UTF-8
END
rm -f "$1/etc/cloud/cloud.cfg.d/90_dpkg.cfg"

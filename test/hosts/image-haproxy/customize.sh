#!/bin/sh
# Gives the image ($1) what an image of Cluster API's load balancer has: a configuration with which haproxy starts, where it will get others.
set -eu
mkdir -p "$1/usr/local/etc/haproxy"
cat >"$1/usr/local/etc/haproxy/haproxy.cfg" <<'END'
global
  maxconn 100
defaults
  mode tcp
  timeout connect 5s
  timeout client 50s
  timeout server 50s
frontend nothing
  bind 127.0.0.1:8403
END
ln -sf /dev/null "$1/etc/systemd/system/haproxy.service"

# Configurations for images like it want more connections than a container may have files where its engine may not raise limits.
cat >"$1/usr/local/sbin/haproxy" <<'END'
#!/bin/sh
exec /usr/sbin/haproxy -n 4000 "$@"
END
chmod 0755 "$1/usr/local/sbin/haproxy"

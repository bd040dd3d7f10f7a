# Prints what Host.Snapshot records, in sections that each begin with a line
# "@@ <name>"; the parsers in sections.go have one function per section.
# Observes only; writes nothing.
LC_ALL=C
export LC_ALL

echo '@@ files'
find / \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \) -prune -o \
	-printf '%p\t%y\t%m\t%U:%G\t%s\t%l\n'
# What lies here is gone after a reboot, so the names at the top are enough.
find /run /tmp /dev/shm /run/systemd/system /run/systemd/transient -mindepth 1 -maxdepth 1 \
	-printf '%p\t%y\t%m\t%U:%G\t-\t%l\n' 2>/dev/null

echo '@@ sums'
# Line-buffered, so that lines of two processes do not mix.
find / \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/log \) -prune -o \
	-type f -print0 | xargs -0 -r -n 400 -P "$(nproc)" stdbuf -oL sha256sum

# Which units are enabled is in the files: links below /etc/systemd. Asking systemd
# for its list of unit files takes longer than all else here.
echo '@@ units'
systemctl list-units --plain --no-legend --no-pager --full --state=active,activating,reloading,failed

echo '@@ sysctls'
find /proc/sys -type f -perm -u=rw -exec grep -sH '' {} +

echo '@@ mounts'
cat /proc/1/mountinfo

echo '@@ iptables'
iptables-save
echo '@@ ip6tables'
ip6tables-save
echo '@@ nft'
nft list ruleset
echo '@@ ipsets'
ipset list -name

echo '@@ links'
ip -details -json link show
echo '@@ addresses'
ip -json address show
echo '@@ routes'
ip -json route show table all
ip -6 -json route show table all
echo '@@ rules'
ip -json rule show

echo '@@ accounts'
getent passwd
echo '@@ groups'
getent group

echo '@@ processes'
ps -eo comm=
echo '@@ cgroups'
find /sys/fs/cgroup -mindepth 1 -maxdepth 2 -type d -printf '%P\n'
echo '@@ end'

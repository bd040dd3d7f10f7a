# Looking. Nothing here changes the host.

# Both clocks at once: when a unit started is measured in time since boot, when a file was written in time of day.
o_clock() {
	read -r up rest </proc/uptime
	k_say clock "$(date +%s.%N)" "$up"
}

# System facts that need a process each; the rest is read by o_files.
o_system() {
	arch=
	{ read -r arch </proc/sys/kernel/arch; } 2>/dev/null || arch=$(uname -m) # there since Linux 6.1
	k_say machine "$arch"
	k_say disk "$(stat -f -c '%a %b %S' /var/lib 2>/dev/null)"
	[ -e /.dockerenv ] && k_say container docker
	[ -e /run/.containerenv ] && k_say container podman
	k_body addresses
	ip -o addr show scope global 2>/dev/null
	read -r name </proc/sys/kernel/hostname
	k_body resolves
	timeout 3 getent ahosts "$name" 2>/dev/null
	tools=
	for tool in zstd gzip; do
		command -v "$tool" >/dev/null 2>&1 && tools="$tools $tool"
	done
	k_say tools $tools
	if [ -f /sys/fs/cgroup/cgroup.controllers ]; then k_say cgroup 2; else k_say cgroup 1; fi
}

# Files by content, at most $1 bytes each. The paths come disguised (see disguise), so that no content can imitate a head.
o_files() {
	max=$1
	shift
	k_body files
	head -v -c "$max" -- "$@" 2>/dev/null
}

# What is at each path; a missing one has no line. Accounts come by number: by name, stat would read the accounts anew for each path.
o_paths() {
	seen=$(stat -c '%f %u %g %s %.9Y %d:%i:%s:%.9Z %n' -- "$@" 2>/dev/null)
	k_body paths
	printf '%s\n' "$seen"
	IFS=$NL
	set -f
	set -- $seen
	set +f
	unset IFS
	for line; do
		shift
		path=${line#* * * * * * }
		case $line in
		4*) o_entries "$path" ;;
		a*) o_link "$path" ;;
		esac
		case ${line#* } in
		'0 0 '*) ;; # root
		*) set -- "$@" "$path" ;;
		esac
	done
	[ $# -gt 0 ] || return 0
	k_body accounts
	stat -c '%u %g %U %G' -- "$@" 2>/dev/null
}

# How many entries directory $1 has.
o_entries() {
	n=0
	for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
		[ -e "$entry" ] || [ -L "$entry" ] && n=$((n + 1))
	done
	k_body entries "$n"
	printf '%s\n' "$1"
}

# Where link $1 leads.
o_link() {
	k_body link
	printf '%s\n' "$1"
	readlink -n -- "$1"
}

# sha256 of regular files, after o_paths has seen them. What "digests" remembers of an unchanged inode is not read again.
o_digests() {
	known=
	[ -r "$S/digests" ] && known=$NL$(cat "$S/digests")
	count=$#
	while [ "$count" -gt 0 ]; do
		p=$1
		shift
		count=$((count - 1))
		[ -f "$p" ] && [ ! -L "$p" ] || continue
		if [ -n "$known" ]; then
			line=${seen%%" $p$NL"*}
			[ "$line" = "$seen" ] && line=${seen%" $p"}
			sig=${line##*"$NL"}
			sig=${sig##* }
			hit=${known##*"$NL$sig "}
			if [ -n "$sig" ] && [ "$hit" != "$known" ]; then
				k_body digest "${hit%%" "*}"
				printf '%s\n' "$p"
				continue
			fi
		fi
		set -- "$@" "$p"
	done
	[ $# -gt 0 ] || return 0
	k_body digests
	sha256sum -- "$@" 2>/dev/null
}

# Those of the units that run, in $running: systemd has a link for each of them, and loads one that is not there each time that it
# is asked about it. Where it has none for its own journal it has none at all, and every unit may run. That of ufw does not run where
# "ufw enable" was all that was done, and tells all the same.
o_running() {
	running=$*
	[ -L /run/systemd/units/invocation:systemd-journald.service ] || return 0
	running=
	for unit; do
		if [ -L "/run/systemd/units/invocation:$unit" ] || { [ "$unit" = ufw.service ] && [ -e /etc/ufw/ufw.conf ]; }; then
			running="$running $unit"
		fi
	done
	return 0
}

o_units() {
	k_body units
	systemctl show -p Id,Names,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,ActiveEnterTimestampMonotonic -- "$@" 2>/dev/null
}

# Modules that are loaded; names with "_". What is built in without parameters is in modules.builtin (see o_files).
o_modules() {
	for m; do
		[ -d "/sys/module/$m" ] && k_say module "$m"
	done
}

# A built-in module that the kernel does not name shows by what it offers: $1 the module, $2 a path.
o_witness() { [ -e "$2" ] && k_say module "$1"; }

o_packages() {
	k_body packages
	if command -v dpkg-query >/dev/null 2>&1; then
		dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' -- "$@" 2>/dev/null
	else
		rpm -q --qf 'installed %{NAME} %{VERSION}-%{RELEASE}\n' -- "$@" 2>/dev/null
	fi
}

o_ports() {
	k_body ports
	ss -Htlnp 2>/dev/null
}

# A command that only looks: $1 its number, $2 the most bytes of its output, $3 its time in hundredths of a second, then its
# words. That we have stopped it is said apart: timeout(1) ends with 124 then, and with 137 when it had to insist, but so may the
# command, or who kills it.
o_command() {
	number=$1 max=$2 limit=$3
	shift 3
	k_body stdout "$number"
	exec 4>&1
	k_uptime
	since=$now
	ended=$({ {
		PATH=$USERPATH timeout -k 1 "$((limit / 100)).$((limit % 100 / 10))" "$@" </dev/null 3>&- 4>&-
		status=$?
		k_uptime
		echo "$status $((now - since))" >&3
	} | head -c "$max" >&4; } 3>&1)
	exec 4>&-
	status=${ended% *}
	k_say exit "$number" "$status"
	case $status in
	124 | 137) [ "${ended#* }" -lt "$limit" ] || k_say stopped "$number" ;;
	esac
}

# The same in an observation, which reads frames on standard error, too.
o_query() {
	printf '\n@%s + stderr %s\n' "$N" "$1" >&2
	o_command "$@"
	printf '\n@%s - stderrend\n' "$N" >&2
}

# Packages, by apt or by dnf and yum.

# Names of all installed packages, sorted.
c_installed() {
	if command -v dpkg-query >/dev/null 2>&1; then
		dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u
	else
		rpm -qa --qf '%{NAME}\n' | sort -u
	fi
}

# Run a package tool within the act's time: it asks nothing, and starts nothing that could hold our lock. What packages and their
# scripts write is for all to read, as it is when a person installs them.
c_tool() {
	s_left 0
	(umask 022; DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 exec timeout -k 30 "$left" "$@" </dev/null 8>&- >&2)
	status=$?
	s_ended "$status"
	return "$status"
}

c_apt() { c_tool apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"; }

# Install $names, or the package files in $files.
c_install() {
	if command -v apt-get >/dev/null 2>&1; then
		# An installation that was cut must be finished before another can begin.
		[ -z "$(dpkg --audit 2>/dev/null)" ] || c_tool dpkg --configure -a --force-confdef --force-confold
		if [ -n "$files" ]; then
			c_apt --no-install-recommends --allow-downgrades install $files
			return
		fi
		c_apt --no-install-recommends install $names && return 0
		echo "again, with new package lists" >&2
		c_apt update && c_apt --no-install-recommends install $names
		return
	fi
	manager=yum
	command -v dnf >/dev/null 2>&1 && manager=dnf
	if [ -n "$files" ]; then
		c_tool "$manager" -y --disablerepo='*' install $files
	else
		c_tool "$manager" -y install $names
	fi
}

# Packages: the field of the names, the suffix of package files, the digests of staged ones in one word, then the names.
c_package() {
	target=$1 suffix=$2 digests=$3
	shift 3
	names=$*
	c_installed >"$T/before" || c_fail 1
	missing=
	for name; do
		grep -qxF -- "$name" "$T/before" || missing=1
	done
	[ -n "$missing" ] || return 0
	if [ "$W" -eq 0 ]; then
		W=$Q
		rm -rf "$S/undo/$W" "$S/undo/$W.added"
		c_try cp "$T/before" "$S/undo/$W"
		c_try sync "$S/undo/$W"
		s_boundary
		c_record package packages "$target"
		c_try sync "$S/undo.log"
	fi
	s_boundary
	files=
	for digest in $digests; do
		staged=$S/staging/${digest#sha256:}
		[ -f "$staged" ] || { echo "package file $digest is not staged" >&2; c_fail 1; }
		c_try ln -f -- "$staged" "$staged.$suffix"
		files="$files $staged.$suffix"
	done
	c_install
	status=$?
	s_boundary
	# What came with it, even when it failed half-way.
	c_installed | comm -13 "$S/undo/$W" - >"$S/undo/$W.added"
	[ "$status" -eq 0 ] || c_fail "$status"
	for digest in $digests; do
		rm -f "$S/staging/${digest#sha256:}" "$S/staging/${digest#sha256:}.$suffix"
	done
}

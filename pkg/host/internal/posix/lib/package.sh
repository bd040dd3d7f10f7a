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

# apt without any source of packages, and without what it remembers of the host's: it has the files that it is given and nothing else.
# The host's own sources, lists and caches stay as they are.
c_apt_alone() {
	c_try mkdir -p "$T/lists/partial"
	c_apt -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$T/lists" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root "$@"
}

# Install $names, or the package files in $files.
c_install() {
	if command -v apt-get >/dev/null 2>&1; then
		# An installation that was cut must be finished before another can begin.
		[ -z "$(dpkg --audit 2>/dev/null)" ] || c_tool dpkg --configure -a --force-confdef --force-confold
		if [ -n "$files" ]; then
			c_apt_alone --no-install-recommends --allow-downgrades install $files
			return
		fi
		c_apt --no-install-recommends install $names && return 0
		echo "again, with new package lists" >&2
		c_apt update && c_apt --no-install-recommends install $names
		return
	fi
	if [ -n "$files" ]; then
		c_dnf --disablerepo='*' install $files
		return
	fi
	# What apt calls name=version is name-version here.
	names=$(printf '%s\n' $names | sed 's/=/-/')
	c_dnf install $names && return 0
	echo "again, with new package lists" >&2
	c_dnf clean expire-cache && c_dnf install $names
}

# dnf, or yum where it is older than that. Weak dependencies are Debian's recommendations.
c_dnf() {
	manager=yum
	command -v dnf >/dev/null 2>&1 && manager=dnf
	c_tool "$manager" -y --setopt=install_weak_deps=False "$@"
}

# Of the packages added by undo entry $W, those that were not asked for by name go when nobody needs them any more, as if apt had
# found them by itself.
c_unasked() {
	command -v apt-mark >/dev/null 2>&1 || return 0
	for name; do
		name=${name%%=*}
		printf '%s\n' "${name%%:*}"
	done | sort -u | comm -13 - "$S/undo/$W.added" >"$T/unasked"
	[ ! -s "$T/unasked" ] || c_tool apt-mark -q -q auto $(cat "$T/unasked")
}

# What undo entry $1, which was cut before it could say so, has brought of the packages named after it: of all that is new since. Where
# there is rpm that is those, and what came in one transaction with any of them: an administrator may have installed the rest.
c_brought() {
	entry=$1
	shift
	c_installed >"$T/now" || return
	comm -13 "$S/undo/$entry" "$T/now" >"$T/since"
	if command -v apt-get >/dev/null 2>&1; then
		cat "$T/since"
		return
	fi
	for name; do printf '%s\n' "${name%%=*}"; done >"$T/named"
	rpm -qa --qf '%{NAME} %{INSTALLTID}\n' >"$T/transactions" || return
	awk '
		FNR == 1 { file++ }
		file == 1 { named[$1] }
		file == 2 { since[$1] }
		file == 3 && $1 in named && $1 in since { ours[$2] }
		file == 4 && $1 in since && $2 in ours { print $1 }' "$T/named" "$T/since" "$T/transactions" "$T/transactions"
}

# Undo entry $1 has brought the packages in the file $2, too.
c_came() {
	[ ! -e "$S/undo/$1.added" ] || cat "$S/undo/$1.added" >>"$2" || c_unwritten "$T"
	sort -u "$2" >"$S/undo/$1.added.part" || c_unwritten "$S"
	c_try sync "$S/undo/$1.added.part"
	c_try mv "$S/undo/$1.added.part" "$S/undo/$1.added"
}

# Packages: the field of the names, the digests of staged package files in one word, then the names.
c_package() {
	target=$1 digests=$2
	shift 2
	names=$*
	suffix=rpm
	command -v apt-get >/dev/null 2>&1 && suffix=deb
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
	elif [ ! -e "$S/undo/$W.added" ]; then
		c_brought "$W" "$@" >"$T/brought" || c_fail 1
		c_came "$W" "$T/brought"
	fi
	s_boundary
	files=
	for digest in $digests; do
		staged=$S/staging/${digest#sha256:}
		[ -f "$staged" ] || { echo "package file $digest is not staged" >&2; c_fail 1; }
		# A package manager goes by the name.
		c_try ln -sf -- "$staged" "$T/${digest#sha256:}.$suffix"
		files="$files $T/${digest#sha256:}.$suffix"
	done
	c_install
	status=$?
	s_boundary
	# What came with it, even when it failed half-way.
	c_installed | comm -13 "$T/before" - >"$T/brought"
	c_came "$W" "$T/brought"
	[ "$status" -eq 0 ] || c_fail "$status"
	[ -z "$files" ] || c_unasked "$@" || c_fail $?
	for digest in $digests; do
		rm -f "$S/staging/${digest#sha256:}"
	done
}

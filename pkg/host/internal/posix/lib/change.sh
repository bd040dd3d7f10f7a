# Changing files and settings. Before each change what was there is saved: contents in undo/<Q>, the rest in a line of
# undo.log. W is the number of the line that this node wrote for the same thing earlier in this run, or 0; then what
# was there is saved already, and what is there now is our own work.

# Change number $1 starts. What it and its commands print to standard error is kept for the case that it fails.
c_do() {
	I=$1
	W=$2
	exec 2>"$T/err"
}

# The change failed with exit code $1.
c_fail() {
	k_body failed "$I" "$1"
	tail -c 8192 "$T/err"
	exit 1
}

# The shell could not write below directory $1. dash says "I/O error" whatever the reason; the one that matters is found here.
c_unwritten() {
	set -- "$1" $(stat -f -c '%f %d' -- "$1")
	[ "${2:-9}" -gt 8 ] && [ "${3:-9}" -gt 0 ] || echo "$1: No space left on device" >&2
	c_fail 1
}

# Run, or fail with the command's code.
c_try() { "$@" || c_fail $?; }

# Record what was there: kind, word, target as a field, more fields.
c_record() {
	line="$Q $R $* ;"
	printf '\n+ %s\n' "$line" >>"$S/undo.log" || c_unwritten "$S"
	k_say record "$line"
	Q=$((Q + 1))
}

c_exists() { [ -e "$1" ] || [ -L "$1" ]; }

# Make the parents of path $1 (as a field $2) and record each that we make.
c_parents() {
	set -- "${1%/*}" "${2%/*}"
	[ -n "$1" ] && [ ! -d "$1" ] || return 0
	c_parents "$1" "$2"
	c_record made directory "$2"
	c_try sync "$S/undo.log"
	s_boundary
	(umask 022; mkdir -- "$1") || c_fail 1
}

# Copy path $1 to undo/$2.part; $3 is a further option of cp. What is not whole is removed: it may be what has filled the disk.
c_part() {
	rm -rf "$S/undo/$2.part" "$S/undo/$2"
	cp -a --reflink=auto $3 -- "$1" "$S/undo/$2.part" && return
	status=$?
	rm -rf "$S/undo/$2.part"
	c_fail "$status"
}

# Keep path $1 as undo/<Q>: by a second link where that can be, by a copy where not.
c_keep() {
	if [ -d "$1" ] && [ ! -L "$1" ] || ! ln -P -- "$1" "$S/undo/$Q" 2>/dev/null; then
		c_part "$1" "$Q"
		[ -d "$1" ] || [ -L "$1" ] || c_try sync "$S/undo/$Q.part"
		c_try mv -T -- "$S/undo/$Q.part" "$S/undo/$Q"
	fi
	# The name, too: not every file system keeps it with the content.
	c_try sync "$S/undo"
	s_boundary
}

# Save what is at path $2 before it is replaced: word, path, field.
c_save() {
	[ "$W" -eq 0 ] || return 0
	if c_exists "$2"; then
		c_keep "$2"
		c_record kept "$1" "$3"
	else
		c_record gone "$1" "$3"
	fi
	s_boundary
}

# Put the finished $1 in the place of $2. A mount point (a container's /etc/hosts) can only be written to.
c_place() {
	[ -d "$2" ] && [ ! -L "$2" ] && c_try rm -rf -- "$2"
	mv -fT -- "$1" "$2" 2>"$T/mv" && return 0
	if [ -f "$1" ] && mountpoint -q -- "$2" && cat -- "$1" >"$2"; then
		chown --reference="$1" -- "$2" && chmod --reference="$1" -- "$2" && rm -f -- "$1" && return 0
	fi
	cat "$T/mv" >&2
	c_fail 1
}

# Give $1 owner $2 (user:group, "-" for root's own files, which need nothing) and mode $3 ("-" when it was born with it).
c_own() {
	[ "$2" = - ] || c_try chown -h -- "$2" "$1"
	[ "$3" = - ] || c_try chmod -- "$3" "$1"
}

# Does path $1 have mode $2 (four digits) and owner $3? Leaves what it has in $had.
c_same_owner() {
	had=$(stat -c '%04a %u %g %U %G' -- "$1")
	set -- "$1" "$2" "$3" $had
	had="$4 $5 $6"
	[ "$4" = "$2" ] || return 1
	owner=$3
	[ "$owner" = - ] && owner=0:0
	user=${owner%:*} group=${owner#*:}
	{ [ "$user" = "$5" ] || [ "$user" = "$7" ]; } && { [ "$group" = "$6" ] || [ "$group" = "$8" ]; }
}

# Change mode and owner alone: word, path, field, mode, owner.
c_meta() {
	c_same_owner "$2" "$4" "$5" && return 0
	[ "$W" -ne 0 ] || { c_record meta "$1" "$3" $had; c_try sync "$S/undo.log"; }
	s_boundary
	owner=$5
	[ "$owner" = - ] && owner=0:0
	c_own "$2" "$owner" "$4"
}

# A file whose content c_put prints: path, field, mode, owner, umask of its birth, mode to set afterwards or "-".
c_file() {
	new=${1%/*}/.${1##*/}.kubexm
	if [ -f "$1" ] && [ ! -L "$1" ] && c_put | cmp -s - "$1"; then
		c_meta file "$1" "$2" "$3" "$4"
		return
	fi
	c_parents "$1" "$2"
	c_save file "$1" "$2"
	c_exists "$new" && c_try rm -rf -- "$new"
	(umask "$5"; set -C; c_put >"$new") || { (c_unwritten "${1%/*}"); rm -f -- "$new"; exit 1; }
	c_own "$new" "$4" "$6"
	c_try sync "$S/undo.log" "$new"
	s_boundary
	c_place "$new" "$1"
}

# A file whose content was staged: path, field, mode, owner, digest, and whether a later change needs the content, too.
c_blob() {
	new=${1%/*}/.${1##*/}.kubexm
	staged=$S/staging/${5#sha256:}
	if [ -f "$1" ] && [ ! -L "$1" ] && c_digest "$1" && [ "$digest" = "$5" ]; then
		[ "$6" = keep ] || rm -f "$staged"
		c_meta file "$1" "$2" "$3" "$4"
		return
	fi
	[ -f "$staged" ] || { echo "content $5 is not staged" >&2; c_fail 1; }
	c_parents "$1" "$2"
	c_save file "$1" "$2"
	c_exists "$new" && c_try rm -rf -- "$new"
	mode=$3
	if [ "$6" != keep ] && mv -- "$staged" "$new" 2>/dev/null; then
		[ "$3" != 0755 ] || mode=- # as t_accept gives it to all that is staged
		c_try touch -- "$new"      # a unit that was started after it was staged has not read it
	else
		c_try cp --reflink=auto -- "$staged" "$new"
	fi
	c_own "$new" "$4" "$mode"
	c_try sync "$S/undo.log" "$new"
	s_boundary
	c_place "$new" "$1"
	printf '%s %s %s\n' "$(stat -c '%d:%i:%s:%.9Z' -- "$1")" "$5" "$1" >>"$S/digests"
}

# The sha256 of path $1 in $digest, from memory when the inode has not changed.
c_digest() {
	sig=$(stat -c '%d:%i:%s:%.9Z' -- "$1")
	digest=
	[ -r "$S/digests" ] && while read -r known value path; do
		[ "$known" = "$sig" ] && digest=$value
	done <"$S/digests"
	[ -n "$digest" ] || {
		digest=$(sha256sum <"$1")
		digest=sha256:${digest%% *}
	}
}

# A directory: path, field, mode, owner.
c_directory() {
	if [ -d "$1" ] && [ ! -L "$1" ]; then
		c_meta directory "$1" "$2" "$3" "$4"
		return
	fi
	c_parents "$1" "$2"
	if c_exists "$1"; then
		c_save directory "$1" "$2"
		c_try sync "$S/undo.log"
		c_try rm -f -- "$1"
	elif [ "$W" -eq 0 ]; then
		c_record made directory "$2"
		c_try sync "$S/undo.log"
	fi
	s_boundary
	c_try mkdir -- "$1"
	c_own "$1" "$4" "$3"
}

# No such path: path, field. What is there is moved away, which is the saving and the change in one; the line comes first,
# and without undo/<seq> it means that nothing has happened yet.
c_absent() {
	c_exists "$1" || return 0
	if [ "$W" -eq 0 ]; then
		W=$Q
		rm -rf "$S/undo/$W"
		c_record kept path "$2"
		c_try sync "$S/undo.log"
	fi
	s_boundary
	if ! c_exists "$S/undo/$W"; then
		if [ "$(stat -c %d -- "$1")" = "$(stat -c %d "$S/undo")" ] && mv -T -- "$1" "$S/undo/$W" 2>/dev/null; then
			c_try sync "$S/undo"
			return 0
		fi
		c_part "$1" "$W"
		c_try sync -f "$S/undo"
		c_try mv -T -- "$S/undo/$W.part" "$S/undo/$W"
		c_try sync "$S/undo"
	fi
	s_boundary
	c_try rm -rf --one-file-system -- "$1"
}

# Print file $1 with the block named $2 replaced by file $3 (removed when $3 is empty, added at the end when it is new).
c_with_block() {
	awk -v begin="# BEGIN kubexm $2" -v end="# END kubexm $2" -v block="$3" '
		function insert(line) { while (block != "" && (getline line < block) > 0) print line; block = "" }
		$0 == begin { inside = 1; insert(); next }
		$0 == end && inside { inside = 0; next }
		!inside { print }
		END { if (inside) exit 3; insert() }' "$1"
}

# The file to which path $1 leads, in $behind: a link stays, and what it leads to is read and replaced.
c_behind() {
	behind=$1
	[ ! -L "$1" ] || behind=$(readlink -f -- "$1") || c_fail 1
}

# A block in a file: path, its field, name, its field, field of "name of path". c_put prints the block with its marks, or
# nothing.
c_block() {
	[ -f "$1" ] || { echo "$1: there is no such file" >&2; c_fail 1; }
	c_behind "$1"
	shift
	set -- "$behind" "$@"
	c_put >"$T/block" || c_fail 1
	block=$T/block
	[ -s "$block" ] || block=
	# A write in place that was cut is finished first.
	c_inplace "$1" "$2"
	c_with_block "$1" "$3" "$block" >"$T/new" || { [ $? -eq 3 ] && echo "$1: block $3 has no end mark" >&2; c_fail 1; }
	cmp -s "$T/new" "$1" && return 0
	if [ "$W" -eq 0 ]; then
		W=$Q
		rm -rf "$S/undo/$W" "$S/undo/$W.new"
		c_try cp -a -- "$1" "$S/undo/$W"
		c_try cp "$T/new" "$S/undo/$W.new"
		c_try sync "$S/undo/$W" "$S/undo/$W.new" "$S/undo"
		s_boundary
		c_record block block "$5" "$2" "$4"
	else
		c_try cp "$T/new" "$S/undo/$W.new"
	fi
	s_boundary
	c_rewrite "$1" "$2" "$T/new"
}

# Give file $1 (as a field $2) the content of $3 and leave owner and mode as they are.
c_rewrite() {
	new=${1%/*}/.${1##*/}.kubexm
	c_exists "$new" && c_try rm -rf -- "$new"
	c_try cp -a -- "$1" "$new"
	cat "$3" >"$new" || { rm -f -- "$new"; c_fail 1; }
	c_try sync "$S/undo.log" "$new"
	s_boundary
	mv -fT -- "$new" "$1" 2>"$T/mv" && return 0
	rm -f -- "$new"
	mountpoint -q -- "$1" || { cat "$T/mv" >&2; c_fail 1; }
	c_try mkdir -p "$S/inplace${2%/*}"
	c_try cp "$3" "$S/inplace$2.part"
	c_try sync "$S/inplace$2.part"
	c_try mv "$S/inplace$2.part" "$S/inplace$2"
	s_boundary
	c_inplace "$1" "$2"
}

# A mount point cannot be replaced: what shall be written to $1 lies whole in inplace until it is.
c_inplace() {
	[ -f "$S/inplace$2" ] || return 0
	cat "$S/inplace$2" >"$1" && sync "$1" || c_fail 1
	rm -f "$S/inplace$2"
}

# A kernel parameter: name as a field, its file, value.
c_sysctl() {
	[ -e "$2" ] || { echo "the kernel has no such parameter" >&2; c_fail 1; }
	old=$(cat "$2")
	c_words "$old"
	before=$words
	c_words "$3"
	[ "$before" = "$words" ] && return 0
	if [ "$W" -eq 0 ]; then
		printf '%s\n' "$old" >"$S/undo/$Q" || c_unwritten "$S"
		c_try sync "$S/undo/$Q" "$S/undo"
		c_record sysctl sysctl "$1"
		c_try sync "$S/undo.log"
	fi
	s_boundary
	printf '%s\n' "$3" >"$2" || c_fail 1
	want=$words
	c_words "$(cat "$2")"
	[ "$words" = "$want" ] || { echo "the kernel made it \"$words\"" >&2; c_fail 1; }
}

# The words of $1 with one blank between them, in $words.
c_words() {
	set -f
	set -- $1
	set +f
	words=$*
}

# A kernel module: name, name with "_", path that shows it built in or "".
c_module() {
	[ -d "/sys/module/$2" ] && return 0
	[ -n "$3" ] && [ -e "$3" ] && return 0
	[ "$2" = overlay ] && grep -qw overlay /proc/filesystems && return 0
	modinfo -F filename -- "$1" 2>/dev/null | grep -q '^(builtin)' && return 0
	[ "$W" -ne 0 ] || { c_record module module "$1"; c_try sync "$S/undo.log"; }
	s_boundary
	c_try modprobe -- "$1"
}

# All swap off, now and in fstab.
c_swapoff() {
	devices=$(while read -r device kind rest; do [ "$device" = Filename ] || printf '%s\n' "$device"; done </proc/swaps)
	lines=
	[ -f /etc/fstab ] && lines=$(grep -E '^[[:space:]]*[^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap([[:space:]]|$)' /etc/fstab)
	[ -n "$devices$lines" ] || return 0
	if [ "$W" -eq 0 ]; then
		printf '%s\n' "$devices" >"$S/undo/$Q" || c_unwritten "$S"
		c_try sync "$S/undo/$Q" "$S/undo"
		c_record swap swap -
		c_try sync "$S/undo.log"
	fi
	s_boundary
	if [ -n "$lines" ]; then
		sed -E 's/^[[:space:]]*[^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap([[:space:]]|$)/#kubexm# &/' /etc/fstab >"$T/new" || c_fail 1
		c_rewrite /etc/fstab /etc/fstab "$T/new"
	fi
	s_boundary
	[ -z "$devices" ] || c_try swapoff -a
}

# Whether a file system is mounted at directory $1, in $mounted: it is not ours to unmount.
c_mounted() {
	mounted=
	if [ -d "$1" ] && [ ! -L "$1" ] && mountpoint -q -- "$1"; then mounted=mounted; fi
}

# A path that others will fill: path, field, and the entries that claim it already: numbers of those that have undo/<seq>, or "-" for one
# that needs none. The first claim counts: what is there by now is what others have filled it with.
c_claim() {
	path=$1 named=$2
	shift 2
	for earlier; do
		[ "$earlier" != - ] && ! c_exists "$S/undo/$earlier" || return 0
	done
	c_mounted "$path"
	if ! c_exists "$path"; then
		c_record claimed_gone claim "$named"
	elif [ -d "$path" ] && [ ! -L "$path" ] && [ -z "$(ls -A -- "$path")" ]; then
		c_record claimed_empty claim "$named" $(stat -c '%04a %u %g' -- "$path") $mounted
	else
		# What is mounted below has its own place: it is no part of what is to be kept, and may be larger than the disk.
		c_part "$path" "$Q" -x
		c_try sync -f "$S/undo"
		c_try mv -T -- "$S/undo/$Q.part" "$S/undo/$Q"
		c_try sync "$S/undo"
		s_boundary
		c_record claimed_kept claim "$named" $mounted
	fi
	c_try sync "$S/undo.log"
	s_boundary
}

# A path that others have filled, or that a file will be written to (word, field, path), and a unit that they run (field). As if neither had
# been there, so that an undo leaves neither.
c_inherit_path() {
	[ "$W" -eq 0 ] || return 0
	c_mounted "$3"
	c_record claimed_gone "$1" "$2" $mounted
	c_try sync "$S/undo.log"
	s_boundary
}
c_inherit_unit() {
	[ "$W" -eq 0 ] || return 0
	c_record unit unit "$1" disabled inactive -
	c_try sync "$S/undo.log"
	s_boundary
}

# A command: its own timeout in hundredths of a second, then its words. c_put prints its standard input; with STREAM set
# that comes through the pipe of t_feed instead.
c_command() {
	s_boundary
	s_left "$1"
	shift
	if [ -n "$STREAM" ]; then
		(c_run timeout -k 5 "$left" sh -c '
			exec 6<>"$0/stream"
			exec 5</proc/self/fd/6
			echo $PPID >"$0/command"
			exec 6>&-
			[ ! -e "$0/broken" ] || exit 1
			: >"$0/opened"
			exec "$@" <&5 5<&-' "$T" "$@")
	else
		c_put | (c_run timeout -k 5 "$left" "$@")
	fi
	status=$?
	if [ "$status" -ne 0 ]; then
		if [ -n "$STREAM" ] && [ -e "$T/broken" ]; then
			echo "its input was cut off" >&2 # for which t_feed kills it
		else
			s_ended "$status"
		fi
		c_fail "$status"
	fi
	s_boundary
}

# Become the command: with its environment (c_env), signals as they were, and without our lock, which nothing that it
# leaves running may hold.
c_run() {
	trap - PIPE
	PATH=$USERPATH
	c_env
	exec "$@" 8>&- >&2
}

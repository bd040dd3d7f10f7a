# Undoing. One function for each kind of line in undo.log; $1 is always the number, $2 the target, then the data. All
# may be cut and called again: a thing kept in undo/<seq> is moved back from there, so where that is missing it is back.

# Undo entry $1 by the function u_<$2>. It runs in a shell of its own, so that it may fail without the rest.
u_entry() {
	seq=$1 kind=$2
	shift 2
	I=$seq
	(
		exec 2>"$T/err"
		"u_$kind" "$seq" "$@"
		s_boundary
		u_done "$seq"
	)
	result=$?
	# 3: put off until all files are back; 4: stays, but is no failure.
	case $result in
	0) k_say undone "$seq" ;;
	3) k_say later "$seq" ;;
	4) k_say stays "$seq" ;;
	*) k_say kept "$seq" ;;
	esac
}

# Entry $1 counts no more.
u_done() {
	printf '\n- %s ;\n' "$1" >>"$S/undo.log" || c_unwritten "$S"
	c_try sync "$S/undo.log"
	rm -rf "$S/undo/$1" "$S/undo/$1".*
}

# Nothing was there.
u_gone() {
	if [ -d "$2" ] && [ ! -L "$2" ]; then
		rmdir -- "$2" || c_fail 1
	else
		c_try rm -f -- "$2" "${2%/*}/.${2##*/}.kubexm"
	fi
}

# We made a directory; it goes when nothing is left in it. $3 says whether this undo is of everything.
u_made() {
	[ -d "$2" ] || return 0
	rmdir -- "$2" 2>/dev/null && return 0
	[ "$3" = all ] || exit 4
}

# Something else was there: it is in undo/<seq>.
u_kept() {
	c_exists "$S/undo/$1" || return 0
	new=${2%/*}/.${2##*/}.kubexm
	rm -rf -- "$new"
	mkdir -p -- "${2%/*}"
	if [ "$(stat -c %d -- "$S/undo/$1")" = "$(stat -c %d -- "${2%/*}")" ]; then
		s_boundary
		c_place "$S/undo/$1" "$2"
		return 0
	fi
	c_try cp -a --reflink=auto -- "$S/undo/$1" "$new"
	c_try sync -f "${2%/*}"
	s_boundary
	c_place "$new" "$2"
	c_try sync "${2%/*}"
}

# Mode and owner were others: $3, $4:$5.
u_meta() {
	c_exists "$2" || return 0
	c_try chown -h "$4:$5" -- "$2"
	c_try chmod "$3" -- "$2"
}

# A block was other: $2 "name of path", $3 the path, $4 the name. When nobody else has changed the file since, it comes back
# as it was to the byte.
u_block() {
	[ -f "$3" ] && [ -f "$S/undo/$1" ] || return 0
	c_behind "$3"
	set -- "$1" "$2" "$behind" "$4" "$5"
	c_inplace "$3" "$5"
	cmp -s "$S/undo/$1" "$3" && return 0
	if cmp -s "$S/undo/$1.new" "$3"; then
		u_kept "$1" "$3"
		return
	fi
	sed -n "\\|^# BEGIN kubexm $4\$|,\\|^# END kubexm $4\$|p" "$S/undo/$1" >"$T/block" || c_fail 1
	block=$T/block
	[ -s "$block" ] || block=
	c_with_block "$3" "$4" "$block" >"$T/new" || c_fail 1
	cmp -s "$T/new" "$3" || c_rewrite "$3" "$5" "$T/new"
}

# A kernel parameter had the value in undo/<seq>; $3 is its file. One whose module is gone needs nothing.
u_sysctl() {
	[ -e "$3" ] && [ -f "$S/undo/$1" ] || return 0
	cat "$S/undo/$1" >"$3" || c_fail 1
}

# A module was not loaded. One that is in use stays.
u_module() {
	modprobe -r -- "$2" 2>/dev/null
	return 0
}

# Swap was on for the devices in undo/<seq>. One that is gone since, or is no swap any more, needs nothing: compressed memory is another
# after a boot, and an administrator may have removed a file.
u_swap() {
	if grep -q '^#kubexm# ' /etc/fstab 2>/dev/null; then
		sed 's/^#kubexm# //' /etc/fstab >"$T/new" || c_fail 1
		c_rewrite /etc/fstab /etc/fstab "$T/new"
	fi
	[ -f "$S/undo/$1" ] || return 0
	while read -r device; do
		[ -n "$device" ] && ! grep -qF -- "$device " /proc/swaps || continue
		# The kernel writes blanks in octal.
		case $device in *\\*) device=$(printf %b "$device") ;; esac
		[ -f "$device" ] || [ -b "$device" ] || continue
		swapon -- "$device" || { status=$?; u_is_no_swap "$device" || c_fail "$status"; }
	done <"$S/undo/$1"
}

# Can $1 be read, and has it no mark of swap, whatever the size of pages?
u_is_no_swap() { head -c 65536 -- "$1" >/dev/null && ! head -c 65536 -- "$1" | grep -qaF SWAPSPACE2; }

# A unit had file state $3 and activity $4; $5 is what it was made to do. One that ran before is started again when all is
# back, so that it starts with what it had. One that did not run is stopped, no matter who started it since: what enables a
# unit may leave the start to others (kubeadm starts the kubelet). Where systemd knows no such unit, it may when all files are back.
u_unit() {
	c_show "$2"
	if [ "$load" = not-found ]; then # or has not seen that its file is back
		c_systemctl daemon-reload || c_fail $?
		c_show "$2"
	fi
	c_linked "$2"
	if [ "$4" != active ] && [ "$active" != inactive ]; then
		[ "$load" = not-found ] && [ "$active" = failed ] || c_systemctl stop -- "$2" || c_fail $?
		systemctl reset-failed -- "$2" 2>/dev/null
	fi
	[ "$load" != not-found ] || [ "$3" != enabled ] || exit 3
	[ "$file" = masked ] && [ "$3" != masked ] && { c_systemctl --no-reload unmask -- "$2" || c_fail $?; }
	case $3 in
	enabled) [ "$file" = enabled ] || c_systemctl --no-reload enable -- "$2" || c_fail $? ;;
	masked) [ "$file" = masked ] || c_systemctl --no-reload mask -- "$2" || c_fail $? ;;
	*) case $file in enabled | enabled-runtime) c_systemctl --no-reload disable -- "$2" || c_fail $? ;; esac ;;
	esac
	[ "$4" != active ] || [ "$5" = - ] || exit 3
}

# A unit ran as invocation $3, and was left to what restarts it ("-": what an older entry says of it counts).
u_left() {
	[ "$3" != - ] || return 0
	c_show "$2"
	[ "$active" = active ] && [ "$invocation" = "$3" ] || exit 3
}

# A unit that was put off: "back" when all files are back, then what u_entry had of it. One that systemd does not know even then was removed
# by somebody, and needs nothing.
u_later() {
	back=$1 seq=$2 kind=$3 unit=$4 was=$5 ran=$6 does=$7 I=$2
	[ "$kind" = unit ] || was='' ran=active does=''
	(
		exec 2>"$T/err"
		c_show "$unit"
		if [ "$load" = not-found ]; then
			[ "$back" = back ] || { echo "systemd knows no such unit, and not all files are back" >&2; c_fail 1; }
		else
			c_linked "$unit"
			[ "$was" != enabled ] || [ "$file" = enabled ] || c_systemctl enable -- "$unit" || c_fail $?
			[ "$ran" != active ] || [ "$does" = - ] || c_systemctl restart -- "$unit" || { status=$?; c_journal "$unit" ""; c_fail "$status"; }
		fi
		u_done "$seq"
	) && k_say undone "$seq" || k_say kept "$seq"
}

# Packages were not there: those in undo/<seq>.added, or when we were cut before that was written, what c_brought finds out. The ones
# that we asked for ($2, in one word) go; of what came along, what nobody needs any more.
u_package() {
	[ -f "$S/undo/$1" ] || return 0
	if [ ! -f "$S/undo/$1.added" ]; then
		c_brought "$1" $2 >"$T/brought" || c_fail 1
		c_came "$1" "$T/brought"
	fi
	c_installed | comm -12 "$S/undo/$1.added" - >"$T/ours"
	[ -s "$T/ours" ] || return 0
	ours=$(cat "$T/ours")
	if ! command -v apt-get >/dev/null 2>&1; then
		u_erase $2
		return
	fi
	[ -z "$(dpkg --audit 2>/dev/null)" ] || c_tool dpkg --configure -a --force-confdef --force-confold
	named=
	for name in $2; do
		name=${name%%=*}
		grep -qxF -- "$name" "$T/ours" && named="$named $name"
	done
	[ -z "$named" ] || u_purge $named
	# Again and again, because each that goes may free another.
	while c_installed | comm -12 "$S/undo/$1.added" - >"$T/ours" && [ -s "$T/ours" ]; do
		apt-get -s autoremove 2>/dev/null | sed -n 's/^Remv \([^ ]*\).*/\1/p' | sort -u | comm -12 "$T/ours" - >"$T/free"
		[ -s "$T/free" ] || return 0
		u_purge $(cat "$T/free")
	done
}

# Remove the packages in $T/ours, all at once or, where other packages need some of them, one after the other as far as that goes. $@ are
# those that were asked for: they must go.
u_erase() {
	if rpm -e --test $ours >/dev/null 2>&1; then
		c_dnf --disablerepo='*' --noautoremove remove $ours || c_fail $?
		return
	fi
	again=1
	while [ -n "$again" ]; do
		again=
		for name in $(c_installed | comm -12 "$T/ours" -); do
			rpm -e --test "$name" >/dev/null 2>&1 || continue
			c_dnf --disablerepo='*' --noautoremove remove "$name" || c_fail $?
			again=1
		done
	done
	for name; do
		name=${name%%=*}
		! grep -qxF -- "$name" "$T/ours" || ! rpm -q -- "$name" >/dev/null 2>&1 || { rpm -e --test -- "$name" >&2; c_fail 1; }
	done
}

# Purge packages, unless something that we did not bring would go with them.
u_purge() {
	apt-get -s purge "$@" 2>/dev/null | sed -n 's/^\(Remv\|Purg\) \([^ ]*\).*/\2/p' | sort -u | comm -23 - "$T/ours" >"$T/others"
	[ ! -s "$T/others" ] || { echo "other packages need $*:" $(cat "$T/others") >&2; c_fail 1; }
	c_apt purge "$@" || c_fail $?
}

# A claimed path was not there, or is to be as if it had not been. $3 says where a file system was mounted there.
u_claimed_gone() { u_clear "$2" "$3"; }

# A claimed path was an empty directory with mode $3 and owner $4:$5. $6 says where a file system was mounted there.
u_claimed_empty() {
	u_clear "$2" "$6"
	c_try mkdir -p -- "$2"
	c_try chown "$4:$5" -- "$2"
	c_try chmod "$3" -- "$2"
}

# A claimed path had content. $3 says where a file system was mounted there.
u_claimed_kept() {
	c_exists "$S/undo/$1" || return 0
	u_clear "$2" "$3"
	if [ -z "$3" ]; then
		u_kept "$1" "$2"
		return
	fi
	c_try cp -a --reflink=auto -- "$S/undo/$1/." "$2"
	c_try sync -f "$2"
}

# Nothing may be at $1 or mounted there or below; what was mounted last goes first. Where $2 says that a file system was mounted at $1 when
# it was claimed, that stays mounted, and is emptied.
u_clear() {
	mounts=
	while read -r id parent device root point rest; do
		# mountinfo writes blanks in octal.
		case $point in *\\*) point=$(printf %b "$point") ;; esac
		case $point in
		"$1") [ "$2" = mounted ] || mounts="$point$NL$mounts" ;;
		"$1"/*) mounts="$point$NL$mounts" ;;
		esac
	done </proc/self/mountinfo
	printf %s "$mounts" | while read -r point; do
		umount -- "$point" 2>/dev/null || umount -l -- "$point" || exit 1
	done || c_fail 1
	if [ "$2" = mounted ]; then
		mountpoint -q -- "$1" || {
			echo "no file system is mounted at $1, where one was when it was claimed: mount it, to be emptied, or another if it is lost" >&2
			c_fail 1
		}
		c_try find "$1" -mindepth 1 -maxdepth 1 -exec rm -rf --one-file-system -- '{}' +
		return
	fi
	c_exists "$1" || return 0
	c_try rm -rf --one-file-system -- "$1"
}

# The command $@ after number, title and its words' count undoes it.
u_command() {
	shift 2
	(c_env() { :; }; c_run "$@" </dev/null) || c_fail $?
}

# Entries that no undo will need, because an earlier one holds what was there: pairs of numbers, the entry and the earlier
# one whose undo/<seq> must be there ("-": it needs none).
u_forget() {
	forgotten=
	while [ $# -gt 0 ]; do
		if [ "$2" = - ] || c_exists "$S/undo/$2"; then
			printf '\n- %s ;\n' "$1" >>"$S/undo.log" || return 1
			forgotten="$forgotten $1"
		fi
		shift 2
	done
	sync "$S/undo.log"
	for seq in $forgotten; do
		rm -rf "$S/undo/$seq" "$S/undo/$seq".*
	done
}

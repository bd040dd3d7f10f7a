# Staging content, and streams for commands.

# Say which of these digests are not staged. Content that lies unchanged in a file that we made is copied from there.
t_missing() {
	for digest; do
		[ -f "$S/staging/${digest#sha256:}" ] || t_copy "$digest" || k_say missing "$digest"
	done
}

t_copy() {
	[ -r "$S/digests" ] || return 1
	found=
	while read -r sig value path; do
		[ "$value" = "$1" ] && [ -f "$path" ] && [ "$(stat -c '%d:%i:%s:%.9Z' -- "$path")" = "$sig" ] && found=$path
	done <"$S/digests"
	[ -n "$found" ] || return 1
	cp --reflink=auto -- "$found" "$S/staging/copy.part" && chmod 0755 "$S/staging/copy.part" && sync "$S/staging/copy.part" && mv "$S/staging/copy.part" "$S/staging/${1#sha256:}"
}

# The sha256 of files, a line for each, by the faster tool.
t_sha256() {
	if command -v openssl >/dev/null 2>&1; then
		openssl dgst -sha256 -r "$@"
	else
		sha256sum "$@"
	fi
}

# Make the pipe by which sshd hands on what arrives hold 1 MiB (1031 is F_SETPIPE_SZ). sshd writes to it once for up to 256 KiB
# that it reads, so with the kernel's 64 KiB more and more waits in its memory, which it copies for every packet: that costs it
# more than to decrypt. Where nothing can do this, sending is slower and no more.
t_widen() {
	perl -e 'fcntl(STDIN, 1031, 1 << 20)' 2>/dev/null || python3 -c 'import fcntl; fcntl.fcntl(0, 1031, 1 << 20)' 2>/dev/null
}

# Receive pieces from standard input: name, offset and length of each on a line, then its bytes. The line "end" ends it. The
# disk writes what has come while more comes: otherwise all of it is left for the sync at the end.
t_receive() {
	writing=
	while read -r name offset count; do
		[ "$name" != end ] || return 0
		dd of="$S/staging/$name.part" bs=256k seek="$offset" count="$count" iflag=fullblock,count_bytes oflag=seek_bytes conv=notrunc status=none || return
		if [ "$count" -ge 4194304 ] && ! { [ -n "$writing" ] && kill -0 "$writing" 2>/dev/null; }; then
			sync -d "$S/staging/$name.part" >/dev/null 2>&1 &
			writing=$!
		fi
	done
	return 1
}

# The same from compressed input; $1 is the tool.
t_unpack() { "$1" -dc | t_receive; }

# What has arrived becomes staged if it is what it should be: $1 is the session's mark, the others are digests. It gets the mode of
# programs, which most of it is.
t_accept() {
	cd "$S/staging" || return
	part=$1.part
	shift
	digests=$*
	set --
	for digest in $digests; do
		[ -e "$digest.$part" ] || : >"$digest.$part"
		set -- "$@" "$digest.$part"
	done
	# The disk writes while the processor reads.
	sync "$@" &
	sums=$NL$(t_sha256 "$@")$NL
	chmod 0755 "$@" && wait "$!" || return
	for digest in $digests; do
		case $sums in
		*"$NL$digest "[\ \*]"$digest.$part$NL"*)
			mv "$digest.$part" "$digest" || return
			k_say accepted "$digest"
			;;
		*)
			rm -f "$digest.$part"
			k_say corrupt "$digest"
			;;
		esac
	done
}

# Feed the pipe that a command of session $1 reads. Each piece is its length on a line, then the bytes; 0 ends the stream. A
# stream that ends without was cut, and must not look complete: the command is stopped before it can see the end.
t_feed() {
	rm -f "$T/stream" "$T/broken" "$T/opened" "$T/closed" "$T/command"
	mkfifo "$T/stream" || return
	trap '' PIPE
	# With both ends held, neither side waits for the other to open the pipe.
	exec 7<>"$T/stream"
	exec 8>"$T/stream"
	k_say ready
	t_widen
	until [ -e "$T/opened" ]; do
		[ ! -e "$T/closed" ] && [ -d "/proc/$1" ] || return
		sleep 0.02
	done
	exec 7>&-
	while IFS= read -r length; do
		[ "$length" -gt 0 ] || return 0
		dd bs=256k count="$length" iflag=fullblock,count_bytes status=none >&8 || return
	done
	: >"$T/broken"
	kill -KILL "-$(cat "$T/command")" 2>/dev/null
}

# The life of a session: locks, the worker, its frames.

# Take the write lock or say who holds it. $1 is our holder line, $2 for s_run. T is the directory for what need not last.
s_begin() {
	until
		mkdir -p "$S/undo" "$S/staging" "$T" || { k_say nostate; return 1; }
		exec 9>>"$S/lock"
		# A writer whose connection was cut a moment ago may not have noticed yet.
		if ! flock -w 2 9; then
			k_body locked
			cat "$S/holder" 2>/dev/null
			k_say end 1
			return 1
		fi
		# The writer before us may have removed the directory while we opened the file.
		[ "$S/lock" -ef /proc/self/fd/9 ]
	do
		exec 9>&-
	done
	printf '%s\n' "$1" >"$S/holder"
	exec 8>>"$S/lock.act"
	until flock -w 1 8; do
		k_body busy
		cat "$S/act" 2>/dev/null
		k_say wait
	done
	rm -rf "$T"/* "$S"/staging/*.part "$S"/undo/*.part
	k_say begun $$
	s_run "$2"
}

# The pump holds the lock for as long as our input lives. The worker holds the other for as long as it acts, and goes on to
# the end of its act when the connection is cut. $1 is how long the writer may be silent, in seconds.
s_run() {
	exec 3<&0
	{
		k_self
		printf '%s\n' "$self" >"$T/pump"
		exec 8>&- 2>/dev/null
		exec cat <&3
	} | {
		exec 9>&- 3<&-
		trap '' PIPE
		# Found once, for all acts.
		hash head stat sync mv ln cp rm mkdir cmp sha256sum systemctl 2>/dev/null
		s_work
	} &
	worker=$!
	exec 3<&- 9>&- 8>&-
	# Not a redirected function: for that the shell would save our output, and so keep it open until the watch has ended.
	(exec </dev/null >/dev/null 2>&1; s_watch "$worker" "$1") &
	watch=$!
	wait "$worker"
	status=$?
	# It looks for the worker once a second only, and nothing of a session may be left when that has ended.
	kill "$watch" 2>/dev/null
	return "$status"
}

# A writer whose machine is gone never closes its connection, and sshd may wait for it for hours. So writers beat (an empty
# line now and then), and a pump that has read nothing for twice $2 seconds is ended, and the lock with it. $1 is the worker.
s_watch() {
	seen= silent=0 waits=
	trap '[ -z "$waits" ] || kill "$waits"; exit' TERM
	until
		timeout "$2" tail --pid="$1" -f /dev/null &
		waits=$!
		wait "$waits"
		ended=$?
		waits=
		[ "$ended" -eq 0 ]
	do
		read -r pump <"$T/pump" && read -r label count <"/proc/$pump/io" || return
		[ "$count" = "$seen" ] || silent=0
		[ "$silent" -lt 2 ] || { kill "$pump"; return; }
		seen=$count
		silent=$((silent + 1))
	done
}

# Each frame is the length of a script on a line, then the script. It runs in a shell of its own.
s_work() {
	while IFS= read -r length; do
		[ -n "$length" ] || continue
		script=$(head -c "$length")
		(
			k_self
			k_say pid "$self"
			eval "$script"
		) </dev/null
		status=$?
		[ ! -p "$T/stream" ] || : >"$T/closed"
		k_say end "$status"
	done
}

# A command that only looks, as o_command has it, in a session, whose standard error is not read for frames: the end of what it says there
# comes after its output.
s_query() {
	o_command "$@" 2>"$T/said"
	k_body stderr "$1"
	tail -c 8192 "$T/said"
}

# Put what c_put prints in the place of the log $1.
s_compact() {
	c_put >"$1.part" && sync "$1.part" && mv "$1.part" "$1"
}

# Write the record of the host's owner: $1 is all of it up to the machine's id. Without $2 it is written only where there is
# none, and nothing says that the host was changed.
s_own() {
	if [ -z "$2" ]; then
		for trace in owner undo.log journal; do
			[ ! -e "$S/$trace" ] && [ ! -L "$S/$trace" ] || return 0
		done
	fi
	id=
	{ read -r id </etc/machine-id; } 2>/dev/null
	case $id in *[!0-9a-f]*) id= ;; esac
	printf '%s"machineID":"%s"}\n' "$1" "$id" >"$S/owner.part" && sync "$S/owner.part" && mv -T "$S/owner.part" "$S/owner" && sync "$S"
}

# Write the record of the serial of the state with which the host is changed: $1 is all of it.
s_serial() {
	printf '%s\n' "$1" >"$S/state-serial.part" && sync "$S/state-serial.part" && mv -T "$S/state-serial.part" "$S/state-serial" && sync "$S"
}

# An act starts: $1 what it is, for a writer who must wait for it; $2 its timeout in hundredths of a second, 0 for none;
# $3 to $5 its run, node and task as fields. Before the first of an exchange, Q is the next number of the undo log and B is 0.
s_act() {
	printf '%s\n' "$1" >"$S/act"
	deadline=0
	if [ "$2" -gt 0 ]; then
		k_uptime
		deadline=$((now + $2))
	fi
	R="$3 $4 $5"
}

# What is left of the act's time, at most $1 hundredths (0: no bound of its own), as timeout(1) takes it; for s_ended in $bound
# as hundredths since $began, too.
s_left() {
	left=$1
	k_uptime
	began=$now
	if [ "$deadline" -gt 0 ]; then
		[ $((deadline - now)) -gt 1 ] || { echo "the act's time is over" >&2; k_say timeout "$I"; c_fail 124; }
		[ "$left" -gt 0 ] && [ "$left" -lt $((deadline - now)) ] || left=$((deadline - now))
	fi
	bound=$left
	if [ "$left" -lt 10 ]; then left=0.0$left; else bound=$((left / 10 * 10)) left=$((left / 100)).$((left % 100 / 10)); fi
}

# Say why a command that s_left bounds has ended with exit code $1, where that was not its own doing. timeout(1) ends with 124
# when it has stopped it and with 137 when it had to insist; but so may the command, and 137 is also what comes of one that
# somebody else kills.
s_ended() {
	case $1 in 124 | 137) ;; *) return 0 ;; esac
	k_uptime
	if [ "$bound" -gt 0 ] && [ $((now - began)) -ge "$bound" ]; then
		k_say timeout "$I"
	elif [ "$1" -eq 137 ]; then
		k_say killed "$I"
	fi
}

# A boundary: what came before is done and what comes after is not. Tests kill us here.
s_boundary() {
	[ -n "$KX_CUT" ] || return 0
	B=$((B + 1))
	[ "$B" -lt "$KX_CUT" ] || kill -KILL 0
}

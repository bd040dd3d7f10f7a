# Units of systemd.

# The state of unit $1 in $load, $active, $file, $reload, $invocation, $type and $result.
c_show() {
	load=not-found active=inactive file= reload=no invocation= type= result= fragment=
	# A systemd that does not answer, as while a host boots, has not said that there is no such unit.
	tries=0
	until shown=$(systemctl show -p LoadState,ActiveState,UnitFileState,NeedDaemonReload,InvocationID,Type,Result,FragmentPath -- "$1"); do
		tries=$((tries + 1))
		[ "$tries" -lt 20 ] || c_fail 1
		sleep 0.5
	done
	set -f
	oldifs=$IFS
	IFS=$NL
	for property in $shown; do
		case $property in
		LoadState=*) load=${property#*=} ;;
		ActiveState=*) active=${property#*=} ;;
		UnitFileState=*) file=${property#*=} ;;
		NeedDaemonReload=*) reload=${property#*=} ;;
		InvocationID=*) invocation=${property#*=} ;;
		Type=*) type=${property#*=} ;;
		Result=*) result=${property#*=} ;;
		FragmentPath=*) fragment=${property#*=} ;;
		esac
	done
	IFS=$oldifs
	set +f
	# systemd looks whether the file that it has read is another by now, not whether there is one that comes before it.
	own=/etc/systemd/system/$1
	if [ -f "$own" ] && [ ! -L "$own" ] && [ -n "$fragment" ] && [ "$fragment" != "$own" ]; then reload=yes; fi
}

# The file state of unit $1 in $file, read from the links anew: what c_show says of it is from before an enable or disable that has not
# been followed by a reload. One that systemd has no file of keeps what c_show said.
c_linked() {
	linked=$(systemctl is-enabled -- "$1" 2>/dev/null)
	case $linked in '' | not-found) ;; *) file=$linked ;; esac
}

# Run systemctl within the act's time.
c_systemctl() {
	bound=0
	if [ "$deadline" -eq 0 ]; then
		systemctl "$@" 8>&- >&2
	else
		s_left 0
		timeout -k 5 "$left" systemctl "$@" 8>&- >&2
	fi
	status=$?
	s_ended "$status"
	return "$status"
}

# Why unit $1 does not run, for anyone who reads the error: of its invocation $2, or the last one, the line that says so, and the end.
# What it said before, when it did run, is not why.
c_journal() {
	[ -n "$2" ] || { c_show "$1"; set -- "$1" "$invocation"; }
	# What a unit said comes to the journal by another way than that it ended, and on a busy host later.
	timeout 10 journalctl --sync 2>/dev/null
	log=
	if [ -z "$2" ]; then
		:
	elif [ -n "$(c_log 1 "_SYSTEMD_INVOCATION_ID=$2" 2>/dev/null)" ]; then
		log=$(c_log 15 "_SYSTEMD_INVOCATION_ID=$2" + "INVOCATION_ID=$2" 2>/dev/null)
	else
		# So much later that the journal did not find out whose words they were: all since systemd started it.
		first=$(journalctl -q --no-pager -o short-unix "INVOCATION_ID=$2" 2>/dev/null | head -n 1)
		[ -z "$first" ] || log=$(c_log 15 --since "@${first%%[!0-9.]*}" -u "$1" 2>/dev/null)
	fi
	[ -n "$log" ] || log=$(c_log 15 -u "$1" 2>&1)
	{
		printf '%s\n' "$log" | grep -E '^[EF][0-9]{4} |^(Error|error|panic):|"?level"?[=:]"?(error|fatal|panic)' | tail -n 1
		printf '%s\n' "$log"
	} >&2
}

# The last $1 messages of the journal that match.
c_log() {
	last=$1
	shift
	journalctl -q -n "$last" --no-pager -o cat "$@"
}

# A unit: name, its field, wanted file state, wanted activity ("" leaves either), settle time in hundredths.
c_unit() {
	c_show "$1"
	if [ "$reload" = yes ] || [ "$load" != loaded ] && [ "$load" != masked ]; then
		c_systemctl daemon-reload || c_fail $?
		c_show "$1"
	else
		[ -z "$3" ] || c_linked "$1"
	fi
	if [ "$4" = left ]; then
		[ "$W" -eq 0 ] && [ "$active" = active ] || return 0
		c_record left unit "$2" "$invocation"
		c_try sync "$S/undo.log"
		s_boundary
		return
	fi
	enable=
	case $3 in
	enabled) case $file in enabled | enabled-runtime | static | generated | alias) ;; *) enable=enable ;; esac ;;
	disabled) case $file in enabled* | linked* | masked*) enable=disable ;; esac ;;
	masked) [ "$file" = masked ] || enable=mask ;;
	esac
	act=
	case $4 in
	started) [ "$active" = active ] || act=start ;;
	restarted) act=restart ;;
	reloaded) act=reload-or-restart ;;
	stopped) case $active in inactive | failed) ;; *) act=stop ;; esac ;;
	esac
	if [ -z "$enable$act" ]; then
		[ "$4" != started ] || c_settle "$1" "$5" # it is up already, and must stay so
		return 0
	fi
	if [ "$W" -eq 0 ]; then
		# One that systemd is starting again runs, but for a moment: an undo starts it.
		[ "$active" = activating ] && ran=active || ran=$active
		c_record unit unit "$2" "${file:--}" "$ran" "${4:--}"
		c_try sync "$S/undo.log"
	fi
	s_boundary
	if [ -n "$enable" ]; then
		[ "$file" = masked ] && { c_systemctl --no-reload unmask -- "$1" || c_fail $?; }
		# Reloading systemd once for every unit would take longer than all else; the session does it once, at its end.
		if [ "$enable $act" = "enable start" ] && [ "$file" != masked ] && [ "$active" != failed ]; then
			c_systemctl --no-reload --now enable -- "$1" || { status=$?; c_journal "$1" ""; c_fail "$status"; }
			s_boundary
			c_settle "$1" "$5"
			return
		fi
		c_systemctl --no-reload "$enable" -- "$1" || c_fail $?
		[ "$file" = masked ] || [ "$enable" = mask ] && { c_systemctl daemon-reload || c_fail $?; }
		s_boundary
	fi
	[ -n "$act" ] || return 0
	[ "$active" = failed ] && systemctl reset-failed -- "$1"
	c_systemctl "$act" -- "$1" || { status=$?; c_journal "$1" ""; c_fail "$status"; }
	s_boundary
	[ "$act" = stop ] || c_settle "$1" "$5"
}

# The unit $1 must be active, now and for $2 hundredths of a second, without a restart in between.
c_settle() {
	c_show "$1"
	started=$invocation
	k_uptime
	until=$((now + $2))
	while :; do
		[ "$type" = oneshot ] && [ "$active" = inactive ] && [ "$result" = success ] && return 0
		if [ "$active" != active ] || [ "$invocation" != "$started" ]; then
			echo "$1 is $active ($result) instead of active" >&2
			c_journal "$1" "$started"
			c_fail 1
		fi
		k_uptime
		[ "$now" -lt "$until" ] || return 0
		[ "$deadline" -eq 0 ] || [ "$now" -lt "$deadline" ] || { k_say timeout "$I"; c_fail 124; }
		sleep 0.2
		c_show "$1"
	done
}

# Part of every script. Set before it: N the mark of the exchange, S the state directory.

NL='
'
LC_ALL=C
# Commands that we are given look in USERPATH; our own tools are where the distribution puts them, so look there first.
USERPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin:$PATH
export LC_ALL PATH
unset CDPATH ENV
umask 077

# A frame without a body, and the head of one with a body.
k_say() { printf '\n@%s - %s\n' "$N" "$*"; }
k_body() { printf '\n@%s + %s\n' "$N" "$*"; }

# Our own process id; $$ is that of the outermost shell.
k_self() { read -r self rest </proc/self/stat; }

# Seconds since boot, whole and hundredths run together.
k_uptime() {
	read -r now rest </proc/uptime
	now=${now%.*}${now#*.}
}

# The descendants of process $1, itself first, in $tree.
k_tree() {
	parents=
	for stat in /proc/[0-9]*/stat; do
		read -r line 2>/dev/null <"$stat" || continue
		pid=${stat#/proc/}
		pid=${pid%/stat}
		line=${line##*) }
		line=${line#* }
		parents="$parents $pid:${line%% *}"
	done
	tree=$1
	found=$1
	while [ -n "$found" ]; do
		level=$found
		found=
		for pair in $parents; do
			for parent in $level; do
				[ "${pair#*:}" = "$parent" ] && found="$found ${pair%:*}"
			done
		done
		tree="$tree$found"
	done
}

# Stop process $1 and all that it started: ask, and after $2 tenths of a second insist.
k_stop() {
	k_tree "$1"
	kill -TERM $tree 2>/dev/null
	left=$2
	while [ "$left" -gt 0 ]; do
		alive=
		for pid in $tree; do
			[ -d "/proc/$pid" ] && alive="$alive $pid"
		done
		[ -n "$alive" ] || return 0
		left=$((left - 1))
		sleep 0.1
	done
	kill -KILL $alive 2>/dev/null
	return 0
}

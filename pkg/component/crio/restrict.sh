#!/bin/sh
# runc where a host is a container itself, for what CRI-O asks for and has no setting for. Without CAP_SYS_RESOURCE no process may lower
# its OOM score: a container that asks for less than 0 gets what CRI-O has itself. One that is privileged asks for all capabilities, and
# gets those that the host has. Where nobody may write to the control groups of huge pages, their limits are left out.

# By their numbers (capabilities(7)).
all="CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN
	NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME
	SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON
	BPF CHECKPOINT_RESTORE"
has=$((0x$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status))) bit=1
own=$(cat /proc/self/oom_score_adj) pages=/sys/fs/cgroup/hugetlb
edits="s/\"oomScoreAdj\": *-[0-9]*/\"oomScoreAdj\":$own/"
for capability in $all; do
	[ $((has & bit)) -ne 0 ] || edits="$edits;s/,[[:space:]]*\"CAP_$capability\"//g;s/\"CAP_$capability\",\{0,1\}[[:space:]]*//g"
	bit=$((bit * 2))
done
if [ -d "$pages" ] && ! [ -w "$pages" ]; then
	edits="$edits;s/,[[:space:]]*\"hugepageLimits\": *\[[^]]*\]//;s/\"hugepageLimits\": *\[[^]]*\],\{0,1\}[[:space:]]*//"
fi
before=
for word; do
	case $before in
	-b | --bundle) sed -i -z "$edits" "$word/config.json" ;;
	esac
	before=$word
done
exec /usr/local/bin/runc "$@"

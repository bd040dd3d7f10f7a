# Removes the AppArmor profile that CRI-O loads into the kernel. Runs on a reset, when no container runs any more.
remove=/sys/kernel/security/apparmor/.remove
[ -w "$remove" ] && printf crio-default >"$remove" 2>/dev/null
exit 0

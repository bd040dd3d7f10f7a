# Remove the users that were made, when they are logged in no more, and the record with them. A door that is opened meanwhile keeps them.
D=/etc/kubexm/door
PATH=$PATH:/usr/sbin:/sbin
exec 9</etc/ssh
n=0
while [ $n -lt 300 ]; do
	sleep 1
	n=$((n + 1))
	flock 9
	[ -f $D/closing ] || exit 0
	left=
	for user in $(sort -u $D/users); do
		[ $n -ne 30 ] || loginctl terminate-user "$user" 2>/dev/null || :
		! id -u "$user" >/dev/null 2>&1 || userdel -r "$user" 2>/dev/null || :
		! id -u "$user" >/dev/null 2>&1 || left=$user
	done
	if [ -z "$left" ]; then
		rm -rf $D
		rmdir /etc/kubexm 2>/dev/null || :
		exit 0
	fi
	flock -u 9
done
echo "kubexm: the user $left, which was made for a Machine, is still logged in after $n tries and stays" >&2
exit 1

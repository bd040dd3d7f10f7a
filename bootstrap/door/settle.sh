# A host that connects to the manager has another sshd for each connection.
[ ! -f $CALL ] || exit 0
# sshd refuses connections while it reads its configuration anew, which begins a moment after it was asked to.
port=$("$sshd" -T | sed -n "s/^port //p" | head -n 1)
n=0
sleep 0.2
until ssh-keyscan -T 2 -p "$port" 127.0.0.1 2>/dev/null | grep -q .; do
	n=$((n + 1))
	[ "$n" -lt 20 ] || break
	sleep 0.2
done

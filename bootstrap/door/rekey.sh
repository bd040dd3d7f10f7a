# Make a key on the host, once, show it, and print its public half.
hold
cd "$D" 2>/dev/null || fail "the door was never opened here: have the host run its bootstrap data"
if [ ! -f host ]; then
	: >reload
	rm -f new new.pub
	ssh-keygen -q -t ecdsa -b 521 -N "" -C kubexm -f new
	mv new.pub host.pub
	mv new host
fi
serve >&2
cut -d " " -f 1,2 host.pub

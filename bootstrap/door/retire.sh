# Take the key away that the bootstrap data brought.
hold
cd "$D" 2>/dev/null && [ -f host ] || fail "the host has no key of its own yet: nobody would know it without the birth key"
[ ! -f birth ] || : >reload
rm -f birth*
serve

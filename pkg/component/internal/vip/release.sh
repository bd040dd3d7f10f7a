# Takes the virtual address $1 off each interface that has it, where its holder was killed and has left it. That need not be the interface
# that is declared now: a holder that is restarted with another one does not clear the one that it had.
ip -oneline address show to "$1" 2>/dev/null | while read -r _ dev _; do ip address del "$1" dev "${dev%%@*}" 2>/dev/null; done
exit 0

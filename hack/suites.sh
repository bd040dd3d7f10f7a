#!/usr/bin/env bash
# The suites of .ci/suites: `list` names them, `run NAME` runs one, `pick` prints the one that the commit's hash chooses, `all` runs each,
# goes on after one that failed, and says in the end which those were.
set -euo pipefail
cd "$(dirname "$0")/.."
names() { awk '!/^#/ && NF { print $1 }' .ci/suites; }
run() {
	local line
	line=$(awk -v name="$1" '$1 == name' .ci/suites)
	[ -n "$line" ] || { echo "no suite $1; there are: $(names | paste -sd' ')" >&2; return 2; }
	local words
	read -ra words <<<"$line"
	echo "== suite $1: make ${words[*]:1}"
	make "${words[@]:1}"
}
case "${1:-list}" in
list) names ;;
run) run "${2:?the name of a suite}" ;;
pick)
	mapfile -t all < <(names)
	commit=$(git rev-parse HEAD)
	echo "${all[$((16#${commit:0:7} % ${#all[@]}))]}"
	;;
all)
	failed=()
	for name in $(names); do
		began=$SECONDS
		if "$0" run "$name"; then result=passed; else result=FAILED; failed+=("$name"); fi
		echo "== suite $name: $result after $((SECONDS - began)) s"
	done
	[ ${#failed[@]} -eq 0 ] || { echo "== failed: ${failed[*]}"; exit 1; }
	;;
*)
	echo "usage: $0 list | run NAME | pick | all" >&2
	exit 2
	;;
esac

#!/usr/bin/env bash
# Fuzzes every target of the repository, or those whose names match $2, for $1 each (a duration as Go writes it). There are as many
# at once as processors, and each uses one. What one finds lies in its package's testdata/fuzz, and is a seed from then on.
#
# With FUZZ_GUIDED empty the fuzzer is not guided by what code a value reaches: that finds less, and spares compiling all that the
# packages depend on a second time.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=$1
only=${2:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A test binary per package is compiled once, of packages that have targets of such names.
mapfile -t packages < <(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . |
	awk -F '[: ]' -v only="$only" '$NF ~ only { sub("/[^/]*$", "", $1); print $1 }' | sort -u)
guided=()
[[ -z ${FUZZ_GUIDED-yes} ]] || guided=(-fuzz=Fuzz)
targets=()
for package in "${packages[@]}"; do
	binary=$work/${package//\//_}.test
	(cd "$package" && "${GO:-go}" test -c "${guided[@]}" -o "$binary" . >&2)
	while read -r name; do
		[[ $name == Fuzz* && $name =~ $only ]] && targets+=("$package $name $binary")
	done < <(cd "$package" && "$binary" -test.list '^Fuzz')
done
echo "fuzzing ${#targets[@]} targets for $fuzztime each, $(nproc) at once:" >&2
fuzz() {
	read -r package name binary <<<"$1"
	log=$work/${package//\//_}.$name.log
	if (cd "$package" && "$binary" -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "$fuzztime" -test.parallel 1 \
		-test.fuzzcachedir "${XDG_CACHE_HOME:-$HOME/.cache}/kubexm-fuzz/${package#./}") >"$log" 2>&1; then
		echo "ok   $package $name: $(grep -o 'execs: [0-9]*' "$log" | tail -1)"
	elif grep -q '^    context deadline exceeded$' "$log" && ! grep -qE 'Failing input|panic|hung|minimizing' "$log"; then
		# Go's fuzzer ends so when its time ends while it waits for a worker; nothing was found.
		echo "ok   $package $name: $(grep -o 'execs: [0-9]*' "$log" | tail -1)"
	else
		echo "FAIL $package $name"
		cat "$log"
		return 1
	fi
}
export -f fuzz
export work fuzztime
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -d '\n' -I{} bash -c 'fuzz "$1"' fuzz {}

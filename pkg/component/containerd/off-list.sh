# $1 is check or remove, $2 the directory with a directory for each registry; all others are registries that are declared. Files that do
# not begin as ours do are others'.
verb=$1 dir=$2
shift 2
for file in "$dir"/*/hosts.toml; do
	of=${file%/hosts.toml} of=${of##*/} declared=
	for registry; do
		[ "$registry" != "$of" ] || declared=1
	done
	[ -f "$file" ] && [ -z "$declared" ] || continue
	read -r first <"$file" || continue
	case $first in
	"# Images of $of are asked of these, "* | "# The certificate of $of is not verified.") ;;
	*) continue ;;
	esac
	[ "$verb" = remove ] || { echo "$of is not declared any more"; exit 1; }
	rm -f -- "$file"
	rmdir -- "$dir/$of" 2>/dev/null || true
done

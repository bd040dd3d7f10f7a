# Prints files below /etc/kubernetes/pki, each as its name and its content in base64 on one line. A file over 64 KiB is none of ours.
cd /etc/kubernetes/pki
for name; do
  [ -f "$name" ] || continue
  [ "$(wc -c <"$name")" -le 65536 ] || { echo "$name is too large" >&2; exit 1; }
  printf '%s %s\n' "$name" "$(base64 <"$name" | tr -d '\n')"
done

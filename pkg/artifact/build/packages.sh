# Downloads $KUBEXM_PACKAGES, and what they depend on beside the packages that the smallest Debian has, into $1/packages. $1 is a
# root file system in which nothing is installed yet; apt is this machine's, with the state and the sources of $1.
APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
LC_ALL=C
export APT_CONFIG LC_ALL

mkdir "$1/packages"
cd "$1/packages"
# What apt would install in the smallest Debian with packages $@, as a plan.
smallest() { apt-get -q -q -s -y --no-install-recommends install '?priority(required)' apt "$@"; }
smallest >../smallest.plan
smallest $KUBEXM_PACKAGES >../all.plan
for plan in smallest all; do
	sed -n 's/^Inst \([^ ]*\).*/\1/p' "../$plan.plan" | sort -u >"../$plan"
done
comm -13 ../smallest ../all >../wanted
[ ! -s ../wanted ] || apt-get -q -q -o APT::Sandbox::User=root download $(cat ../wanted) >&2

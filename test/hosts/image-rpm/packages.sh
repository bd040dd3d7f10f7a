# Runs in the root file system that becomes the image: makes an rpm of each package in /srv/build/debs, a repository of these in
# /srv/rpms, and has rpm know what the image consists of.
cd /srv/build
# Debian has each user keep packages of their own.
mkdir -p /etc/rpm
echo '%_dbpath /var/lib/rpm' >/etc/rpm/macros.testhost

# The family's name of package $1.
named() {
	sed -n "s/^$1 //p" repository.txt base.txt | grep . || echo "$1"
}

# A version without epoch and without the "-" that rpm has for other things.
version() { printf '%s\n' "$1" | sed 's/^[0-9]*://; s/-/./g'; }

# One rpm of package file $1, as release $2 of it.
make_rpm() {
	package=$(dpkg-deb -f "$1" Package)
	name=$(named "$package")
	tree=/srv/build/tree/$name
	rm -rf "$tree"
	mkdir -p "$tree"
	dpkg-deb -x "$1" "$tree"
	rm -rf "$tree/usr/share/doc" "$tree/usr/share/man" "$tree/usr/share/lintian" "$tree/usr/share/locale" "$tree/etc/logrotate.d"
	# The family starts units alone, and has no scripts of System V.
	rm -rf "$tree/etc/init.d"
	# Where the family has it.
	[ "$name" != nginx-filesystem ] || rm -rf "$tree/usr/share/nginx/modules"
	if [ "$name" = nginx-mod-stream ]; then
		rm -rf "$tree/etc" "$tree/usr/share"
		mkdir -p "$tree/usr/share/nginx/modules"
		echo 'load_module "/usr/lib/nginx/modules/ngx_stream_module.so";' >"$tree/usr/share/nginx/modules/mod-stream.conf"
	fi
	requires=
	for needed in $(dpkg-deb -f "$1" Depends | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/:[a-z0-9]*//; s/[^a-z0-9.+-]//g'); do
		for deb in debs/"${needed}"_*.deb; do
			[ ! -f "$deb" ] || requires="$requires $(named "$needed")"
		done
	done
	{
		printf 'Name: %s\nVersion: %s\nRelease: %s.el9\nSummary: %s of Debian\nLicense: as Debian has it\nAutoReqProv: no\n' \
			"$name" "$(version "$(dpkg-deb -f "$1" Version)")" "$2" "$package"
		for r in $requires; do printf 'Requires: %s\n' "$r"; done
		printf '%%description\n%s of Debian.\n%%install\ncp -a %s/. %%{buildroot}\n%%files\n' "$package" "$tree"
		find "$tree" ! -type d -printf '"/%P"\n'
		# Directories that the base has not are the package's.
		find "$tree" -mindepth 1 -type d -printf '%P\n' | while read -r dir; do
			[ -e "/$dir" ] || printf '%%dir "/%s"\n' "$dir"
		done
	} >"$name.spec"
	build "$name.spec"
}

build() {
	rpmbuild --quiet -bb --define '_rpmdir /srv/build/rpms' --define '_topdir /srv/build/top' --define '_build_id_links none' \
		--define 'debug_package %{nil}' --define '__os_install_post %{nil}' --define '_binary_payload w1.gzdio' "$1" >&2
}

for deb in debs/*.deb; do
	make_rpm "$deb" 1
done
# One has a second release, for hosts to be brought to.
make_rpm debs/jq_*.deb 2
find rpms -name '*.rpm' -exec mv {} /srv/rpms \;
createrepo_c --quiet --no-database /srv/rpms

# What is there, without files: nothing of it is ever to be removed.
{
	printf 'Name: rocky-release\nVersion: 9.5\nRelease: 1.el9\nSummary: Rocky Linux, simulated\nLicense: none\nProvides: system-release = 9\n'
	printf '%%description\nIt is Debian.\n%%files\n'
	dpkg-query -W -f '${Package} ${Version}\n' | while read -r package version; do
		case $package in apt | dpkg) continue ;; esac
		printf '%%package -n %s\nVersion: %s\nSummary: %s of Debian\n%%description -n %s\nIt is in the image.\n%%files -n %s\n' \
			"$(named "$package")" "$(version "$version")" "$package" "$(named "$package")" "$(named "$package")"
	done
} >base.spec
rm -rf rpms
build base.spec
rpm --initdb
rpm -i --justdb --nodeps $(find rpms -name '*.rpm')
rpm -q bash rocky-release iptables-nft >&2

#!/bin/sh
# Inside a Debian of the nodes' release: builds Apptainer with its setuid starter, packs it as /srv/package.deb.
#   package.sh VERSION PACKAGE_VERSION JOBS
# Needs Go in /usr/local/go, the source with vendor/ in /srv/source and this folder as /srv/recipe. With
# SOURCE_DATE_EPOCH and equal input the package is the same, byte for byte.
set -eu
umask 022

version=$1
package_version=$2
jobs=$3
export PATH="/usr/local/go/bin:$PATH" GOTOOLCHAIN=local GOCACHE=/srv/cache HOME=/srv
libexec=/usr/lib/$(gcc -print-multiarch)
root=/srv/root

build() {
    make -C builddir "GOFLAGS=-mod=vendor -trimpath -p=$jobs" "$@"
}

cd /srv/source
echo "$version" >VERSION
./mconfig -b builddir -P release-stripped --reproducible --with-suid --without-network \
    --without-libsubid --prefix=/usr --sysconfdir=/etc --libexecdir="$libexec" --localstatedir=/var/lib
# The Makefile would empty Go's cache before it builds the starters; nothing in it is old here.
touch builddir/.clean-starter
build
build DESTDIR="$root" install

# As Debian's package has it: another package may give the command singularity too.
for path in usr/bin/singularity usr/bin/run-singularity usr/share/bash-completion/completions/singularity; do
    mv "$root/$path" "$root/$path.apptainer"
done
rm "$root"/usr/share/man/man1/singularity*
gzip --best --no-name "$root"/usr/share/man/man1/*
install -D --mode=644 LICENSE.md "$root/usr/share/doc/apptainer/copyright"
chmod -R u+rwX,go+rX,go-w "$root"
chmod 4755 "$root$libexec/apptainer/bin/starter-suid"

size=$(find "$root" -type f -printf '%s\n' | awk '{ bytes += $1 } END { printf "%d", bytes / 1024 }')
mkdir "$root/DEBIAN"
(cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
sed -e "s/@VERSION@/$package_version/" -e "s/@ARCHITECTURE@/$(dpkg --print-architecture)/" -e "s/@SIZE@/$size/" \
    -e "s/@LIBC@/$(dpkg-query --show --showformat='${source:Upstream-Version}' libc6)/" \
    /srv/recipe/debian/control >"$root/DEBIAN/control"
install --mode=755 /srv/recipe/debian/postinst /srv/recipe/debian/prerm "$root/DEBIAN"
# Several threads would cut the data elsewhere.
dpkg-deb --root-owner-group -Zzstd -z9 --threads-max=1 --build "$root" /srv/package.deb

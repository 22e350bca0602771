#!/bin/sh
# Inside a Debian of the nodes' release: builds Slurm's plugin mpi/pmix, packs it as /srv/package.deb.
#   package.sh VERSION PACKAGE_VERSION JOBS
# VERSION is Debian's, of the packages that the plugin is for. Needs the source in /srv/source and this folder as
# /srv/recipe. With SOURCE_DATE_EPOCH and equal input the package is the same, byte for byte.
set -eu
umask 022

version=$1
package_version=$2
jobs=$3
libraries=/usr/lib/$(gcc -print-multiarch)
root=/srv/root
plugins=$root$libraries/slurm-wlm
document=$root/usr/share/doc/isthmus-slurm-pmix

installed() {
    dpkg-query --show --showformat="\${source:Upstream-Version}" "$1"
}

cd /srv/source
# Only what the one plugin is compiled with is looked for. Like Debian's it opens libpmix by its path.
./configure --prefix=/usr --sysconfdir=/etc/slurm --libdir="$libraries" --disable-dependency-tracking --disable-pam \
    --without-hwloc --without-munge --without-readline --without-rpath --with-pmix="$libraries/pmix2"
make -C src/plugins/mpi/pmix "-j$jobs" CFLAGS="-O2 -fno-strict-aliasing -fno-omit-frame-pointer"
mkdir -p "$plugins" "$document"
install --mode=644 --strip src/plugins/mpi/pmix/.libs/mpi_pmix_v5.so "$plugins"
ln -s mpi_pmix_v5.so "$plugins/mpi_pmix.so"
cat COPYING DISCLAIMER >"$document/copyright"

size=$(find "$root" -type f -printf '%s\n' | awk '{ bytes += $1 } END { printf "%d", bytes / 1024 }')
mkdir "$root/DEBIAN"
sed -e "s/@VERSION@/$package_version/" -e "s/@ARCHITECTURE@/$(dpkg --print-architecture)/" -e "s/@SIZE@/$size/" \
    -e "s/@LIBC@/$(installed libc6)/" -e "s/@PMIX@/$(installed libpmix2t64)/" -e "s/@SLURM@/$version/" \
    /srv/recipe/debian/control >"$root/DEBIAN/control"
# Several threads would cut the data elsewhere.
dpkg-deb --root-owner-group -Zzstd -z9 --threads-max=1 --build "$root" /srv/package.deb

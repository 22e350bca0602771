#!/bin/bash
# Compiles the example; then the compilers go, and what of Intel MPI is for developers, for GPUs, or there four times.
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi
intel=$root/opt/intel

# A shell of ssh has another environment than the image: programs and libraries are found without it.
echo /opt/intel/lib >"$root/etc/ld.so.conf.d/intel-mpi.conf"
for program in mpirun mpiexec mpiexec.hydra hydra_bstrap_proxy hydra_pmi_proxy IMB-MPI1; do
    chmod 755 "$intel/bin/$program"
    ln -s "/opt/intel/bin/$program" "$root/usr/local/bin/$program"
done
# A wheel has no links: each library is there under each of its names.
for library in "$intel"/lib/*.so.*; do
    short=${library%.so.*}.so
    if [ ! -L "$library" ] && cmp --silent "$library" "$short"; then
        ln -sf "$(basename "$short")" "$library"
    fi
done
chroot "$root" ldconfig
chroot "$root" g++ -O2 -I/opt/intel/include -o /home/mpiuser/pi /usr/src/pi.cc -L/opt/intel/lib -lmpi

rm -rf "$intel"/include "$intel"/bin/{mpi*cc,mpi*cx*,mpi*f*,mpigxx,mpiicp*,IMB-*-GPU} "$intel"/lib/libmpcp* \
    "$intel"/opt/mpi/{tune_fast,etc/*.fatbin,etc/*.spv} "$intel"/share/java "$root"/usr/src/pi.cc
# shellcheck disable=SC2016
chroot "$root" dpkg-query --show --showformat '${Section} ${Package}\n' |
    sed -n 's/^\(devel\|libdevel\) //p' | xargs chroot "$root" dpkg --purge --force-depends
if chroot "$root" ldd /home/mpiuser/pi | grep 'not found'; then
    exit 1
fi
test -s "$intel/share/doc/mpi/licensing/license.txt"
rm -f "$root/var/log/dpkg.log" "$root"/var/lib/dpkg/*-old

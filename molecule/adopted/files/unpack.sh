#!/bin/bash
# Unpacks Debian's Slurm below a folder, with no package installed but what Slurm's programs are linked with.
set -euo pipefail
root=$1
packages=(slurm-client slurm-wlm-basic-plugins slurmctld slurmd)
debs=$(mktemp -d)
chmod 755 "$debs"
cd "$debs"
apt-get update -qq
apt-get download -qq "${packages[@]}"
for deb in *.deb; do
    needed=$(dpkg-deb --field "$deb" Depends | tr ',' '\n' | grep --invert-match slurm | paste --serial --delimiters=,)
    apt-get satisfy -qq --no-install-recommends "$needed" >/dev/null
    dpkg-deb --extract "$deb" "$root"
done
rm -r "$debs"
# Their own names are what a package's scripts would set up.
for program in "$root"/usr/{bin,sbin}/*-wlm; do
    ln -s "$(basename "$program")" "${program%-wlm}"
done
find "$root/usr" -name slurm-wlm -type d -path '*-linux-gnu/*' >/etc/ld.so.conf.d/site-slurm.conf
ldconfig

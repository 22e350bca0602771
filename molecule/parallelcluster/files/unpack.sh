#!/bin/bash
# unpack.sh: Slurm below /opt/slurm, of Debian's next release and thus of another version than the distribution's, with
# the libraries that it needs and this release has not, as ParallelCluster brings its own; and Apptainer's package, which
# nodes get with what they begin with.
set -euo pipefail
packages=(slurm-client slurm-wlm-basic-plugins slurmctld slurmd libslurm-dev libslurm45t64)
libraries=(libhwloc15 libllhttp9.4 libhttp-parser2.9 libjwt2 libmunge2 libjansson4 libibmad5 libibumad3)
[ ! -e /opt/slurm/sbin/slurmctld ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The address of the mirror is that of this host's own sources.
mirror=$(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' | head -n 1)
mkdir -p "$work"/{lists/partial,cache/archives/partial,root}
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$work/sources.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache")
"${apt[@]}" update
(cd "$work" && "${apt[@]}" download "${packages[@]}" "${libraries[@]}" apptainer)
mkdir -p /home/.s3
mv "$work"/apptainer_*.deb /home/.s3/apptainer.deb
for deb in "$work"/*.deb; do
    dpkg-deb --extract "$deb" "$work/root"
done
mkdir -p /opt/slurm/lib /opt/slurm/etc/scripts/{prolog.d,epilog.d}
cp --archive "$work"/root/usr/{bin,sbin,include} /opt/slurm/
cp --archive "$work"/root/usr/lib/*-linux-gnu/. /opt/slurm/lib/
# Their own names are what a package's scripts would set up.
for program in /opt/slurm/{bin,sbin}/*-wlm; do
    [ ! -e "$program" ] || ln -sf "$(basename "$program")" "${program%-wlm}"
done

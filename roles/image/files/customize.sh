#!/bin/sh
# Last steps of a node image; mmdebstrap calls this with the root file system and, for a node with the layers' packages,
# with the folder of wheels, the lock file and the place of the nodes' venv.
set -eu
root=$1

if [ $# -gt 1 ]; then
    wheels=$2 lock=$3 prefix=$4
    mkdir -p "$root/tmp/wheels"
    cp "$wheels"/*.whl "$lock" "$root/tmp/wheels"
    chroot "$root" python3 -m venv "$prefix"
    chroot "$root" "$prefix/bin/pip" install --quiet --no-index --find-links /tmp/wheels --require-hashes \
        --requirement "/tmp/wheels/${lock##*/}"
    # Role base installs no dependency where this is the lock that it has.
    cp "$lock" "$root$prefix/lock"
    rm -r "$root/tmp/wheels"
fi

# A machine of a cloud: its network is networkd's, and cloud-init says how it is.
if [ -e "$root/usr/bin/cloud-init" ]; then
    systemctl --quiet --root "$root" enable systemd-networkd systemd-resolved
fi

# Of all kinds of nodes there is one image: a node's roles start what it is for, once that is configured.
for unit in docker-registry mariadb munge nginx prometheus prometheus-alertmanager prometheus-node-exporter sackd \
    slurmctld slurmd slurmdbd; do
    [ ! -e "$root/usr/lib/systemd/system/$unit.service" ] || systemctl --quiet --root "$root" disable "$unit"
done
# What packages made up for this host alone: the cluster has a key of its own, the deployer makes each node's host key.
rm -f "$root"/etc/munge/munge.key "$root"/etc/ssh/ssh_host_*
# Nodes with one machine-id get one MAC address from udev; podman and systemd fill an empty file.
: >"$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id"
# A node is thrown away, never repaired: packages need not be flushed to disk one by one.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/isthmus"
# Timers that lock apt while a play installs packages; a mount that comes late over the /tmp podman gave, and
# hides what a running module has there.
for unit in apt-daily.timer apt-daily-upgrade.timer tmp.mount; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done

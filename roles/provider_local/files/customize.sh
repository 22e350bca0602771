#!/bin/sh
# Last steps of a node image; mmdebstrap calls this with the root file system.
set -eu
root=$1

# Nodes with one machine-id get one MAC address from udev; podman and systemd fill an empty file.
: >"$root/etc/machine-id"
# The deployer makes each node's own host key.
rm -f "$root"/etc/ssh/ssh_host_*
# A node is thrown away, never repaired: packages need not be flushed to disk one by one.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/isthmus"
# Timers that lock apt while a play installs packages; a mount that comes late over the /tmp podman gave, and
# hides what a running module has there.
for unit in apt-daily.timer apt-daily-upgrade.timer tmp.mount; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done

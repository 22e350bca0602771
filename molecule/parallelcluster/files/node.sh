#!/bin/bash
# node.sh: what every image of ParallelCluster has: Slurm's name of configuration and libraries, PATH, munge, users.
set -euo pipefail
# Debian's programs look there, where ParallelCluster's are built to look below /opt/slurm.
ln -sfn /opt/slurm/etc /etc/slurm
mkdir -p /usr/lib/x86_64-linux-gnu
ln -sfn /opt/slurm/lib/slurm-wlm /usr/lib/x86_64-linux-gnu/slurm-wlm
printf '%s\n' /opt/slurm/lib /opt/slurm/lib/slurm-wlm >/etc/ld.so.conf.d/slurm.conf
ldconfig
echo "PATH=/opt/slurm/bin:\$PATH" >/etc/profile.d/slurm.sh
id slurm >/dev/null 2>&1 || useradd --system --uid 64030 --no-create-home --shell /usr/sbin/nologin slurm
install -d -o slurm -m 755 /var/spool/slurm /var/log/slurm
mkdir -p /var/log/parallelcluster /etc/parallelcluster/slurm_plugin
hostname >/etc/parallelcluster/slurm_plugin/slurm_nodename

#!/bin/bash
# join.sh: this compute node joins the cluster, once there is a token on the share; nothing to do when it has.
set -euo pipefail
prefix=/opt/isthmus
given=/opt/slurm/etc/isthmus/join
own=/etc/isthmus/join
named=/etc/parallelcluster/slurm_plugin/slurm_nodename
joined=/var/lib/isthmus/node/joined.json

if [ ! -e "$given" ]; then
    echo "no $given: layer kubernetes and playbooks/publish.yml have not run yet" >&2
    exit 1
fi
install -d -m 755 /etc/isthmus
name=$(cat "$named" 2>/dev/null || hostname --short)
before=$(stat --format=%Y "$joined" 2>/dev/null || echo never)
(
    umask 077
    grep --extended-regexp '^(TOKEN|SERVER)=' "$given" >"$own"
    echo "NAME=$name" >>"$own"
)
"$prefix/bin/isthmus" node join --packages --file "$own"
# A slurmd that began without the plugin looks for its prolog at its start alone; jobs live through that.
if [ "$before" = never ] && systemctl is-active --quiet slurmd; then
    systemctl restart slurmd
fi
systemctl disable --quiet --now isthmus-await.timer 2>/dev/null || true

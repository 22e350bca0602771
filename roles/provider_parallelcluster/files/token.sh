#!/bin/bash
# token.sh: what compute nodes join with lies on the share, for root alone; a new one each day, valid for a week.
# A node that comes back under a name is another machine, so the token lets it replace the one before.
set -euo pipefail
folder=/opt/slurm/etc/isthmus
settings=/etc/isthmus/join/compute.json
[ -e "$settings" ] || exit 0
port=$(systemctl show --property=ExecStart isthmus-joind | grep --only-matching --extended-regexp -- '--port[= ][0-9]+' | tr -dc 0-9 || true)
address=$(/opt/isthmus/bin/python3 -c 'import json; print(json.load(open("/etc/isthmus/network.json"))["address"])')
token=$(/opt/isthmus/bin/isthmus node token create --class compute --replace --uses 100000 --ttl 7d --json |
    /opt/isthmus/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])')
umask 077
printf 'TOKEN=%s\nSERVER=%s:%s\n' "$token" "$address" "${port:-7443}" >"$folder/.join.part"
sync "$folder/.join.part"
mv "$folder/.join.part" "$folder/join"

#!/bin/sh
# Takes a snapshot of this member into a folder and keeps the newest ones:  etcd-snapshot FOLDER KEEP
set -eu
folder=$1 keep=$2
# etcdctl writes beside it, checks it and renames it: what has the name is whole.
/usr/local/sbin/isthmus-etcdctl snapshot save "$folder/$(date -u +%Y-%m-%dT%H-%M-%SZ).db"
find "$folder" -maxdepth 1 -name '*.part' -delete
find "$folder" -maxdepth 1 -name '*.db' | sort -r | tail -n +"$((keep + 1))" | while read -r old; do
    rm -- "$old"
done

#!/bin/bash
# bootstrap.sh ROLE CLUSTER s3://BUCKET/FOLDER: a node of ParallelCluster gets what Isthmus brings to it.
#
# ParallelCluster runs this as root on each node (OnNodeConfigured; on the head node OnNodeUpdated too), from a file of a
# random name, with these arguments for ever: a head node's cannot change. What it does is in the archive that the
# bucket's object `current` names by its sha256. It may be run again at any time.
#
# What it says is in syslog (isthmus-bootstrap) and in /var/log/parallelcluster/isthmus-bootstrap.log; ParallelCluster
# keeps what a script that failed said last on stderr.
set -euo pipefail

log=/var/log/parallelcluster/isthmus-bootstrap.log
cache=/var/cache/isthmus
error() {
    logger --tag isthmus-bootstrap -- "$*" || true
    echo "isthmus-bootstrap: $*" | tee -a "$log" >&2
    exit 1
}

# Of ParallelCluster's images; older ones have it only beside their own programs.
aws_command() {
    local found
    found=$(command -v aws) || found=$(compgen -G '/opt/parallelcluster/pyenv/versions/*/envs/*/bin/aws' | head -n 1)
    [ -n "$found" ] || error "no aws command; install AWS's CLI in the image"
    echo "$found"
}

mkdir -p "${log%/*}" "$cache"
[ $# -eq 3 ] || error "three arguments are needed: ROLE CLUSTER s3://BUCKET/FOLDER; these are $*"
role=$1 cluster=$2 folder=$3
case $role in head | login | compute | image) ;; *) error "role $role is none of head, login, compute, image" ;; esac

aws=$(aws_command)
get() {
    "$aws" s3 cp --only-show-errors "$folder/$1" "$2" 2>>"$log" ||
        error "$folder/$1 cannot be read; run playbooks/create.yml, and let this node's role read the bucket"
}

part=$(mktemp -d "$cache/part.XXXXXX")
trap 'rm -rf "$part"' EXIT
get current "$part/current"
digest=$(cat "$part/current")
[[ $digest =~ ^[0-9a-f]{64}$ ]] || error "$folder/current has no sha256; run playbooks/create.yml"
content=$cache/$digest
if [ ! -d "$content" ]; then
    get "content/$digest.tar" "$part/content.tar"
    found=$(sha256sum "$part/content.tar")
    [ "${found%% *}" = "$digest" ] || error "content/$digest.tar has sha256 ${found%% *}; run playbooks/create.yml"
    mkdir "$part/content"
    tar --extract --no-same-owner --file "$part/content.tar" --directory "$part/content"
    rm "$part/content.tar"
    # The name comes when it is whole.
    mv --no-target-directory "$part/content" "$content" || [ -d "$content" ]
fi

# Its own stderr is kept for the case that it fails.
if ! "$content/setup.sh" "$role" "$cluster" > >(tee -a "$log" | logger --tag isthmus-bootstrap) 2>"$part/errors"; then
    cat "$part/errors" >>"$log"
    error "setup of $role failed: $(tail -n 5 "$part/errors" | tr '\n' ' ')"
fi
cat "$part/errors" >>"$log"

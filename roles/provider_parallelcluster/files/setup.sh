#!/bin/bash
# setup.sh ROLE CLUSTER: brings this version of Isthmus to a node of ParallelCluster; of the archive that it is in.
# Every step looks first: a second run, and one after a cut, do only what is left.
set -euo pipefail
role=$1 cluster=$2
here=$(cd "$(dirname "$0")" && pwd)
prefix=/opt/isthmus
key=$(cat "$here/key")
# Of every node, and root's alone to read; ParallelCluster exports it with no_root_squash.
shared=/opt/slurm/etc/isthmus
plugstack=/opt/slurm/etc/plugstack.conf

say() { echo "$role of $cluster: $*"; }

install_packages() {
    local lacking=() name
    [ -e /usr/share/doc/python3-venv ] || lacking+=(python3-venv)
    shopt -s nullglob
    local debs=("$here"/debs/*.deb)
    for name in "${debs[@]}"; do
        [ "$(dpkg-query --show --showformat='${Version}' "$(dpkg-deb --field "$name" Package)" 2>/dev/null)" = \
            "$(dpkg-deb --field "$name" Version)" ] || lacking+=("$name")
    done
    [ ${#lacking[@]} -gt 0 ] || return 0
    say "installing ${lacking[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=300 -qq update
    apt-get -o DPkg::Lock::Timeout=300 -qq install --yes --no-install-recommends "${lacking[@]}" >/dev/null
}

# As role base does; a node of an image made with `pcluster build-image` has it already.
install_program() {
    local mark=$prefix/wheels/.installed-$key
    [ ! -e "$mark" ] || return 0
    say "installing Isthmus $key"
    rm -rf "$prefix/wheels"
    mkdir -p "$prefix/wheels"
    tar --extract --no-same-owner --file "$here/wheels.tar" --directory "$prefix/wheels"
    [ -x "$prefix/bin/pip" ] || python3 -m venv "$prefix"
    local found=(--quiet --no-index --find-links "$prefix/wheels" --force-reinstall)
    if cmp --silent "$here/lock" "$prefix/lock"; then
        "$prefix/bin/pip" install "${found[@]}" --no-deps isthmus
    else
        rm -f "$prefix/lock"
        "$prefix/bin/pip" install "${found[@]}" isthmus
        cp "$here/lock" "$prefix/lock"
    fi
    ln -sfn "$prefix/bin/isthmus" /usr/local/bin/isthmus
    echo "$key" >"$prefix/program"
    echo "$key" >"$mark"
}

install_units() {
    local unit changed=0
    for unit in "$@"; do
        cmp --silent "$here/$unit" "/etc/systemd/system/$unit" && continue
        install -m 644 "$here/$unit" "/etc/systemd/system/$unit"
        changed=1
    done
    [ $changed -eq 0 ] || systemctl daemon-reload
}

install_scripts() {
    mkdir -p "$prefix/parallelcluster"
    install -m 755 "$here"/{join,token}.sh "$prefix/parallelcluster"
}

# Slurm reads the plugins of a folder of its own; ParallelCluster's own, such as pyxis, stay.
include_plugins() {
    mkdir -p "$plugstack.d"
    local line="include $plugstack.d/*.conf"
    grep --quiet --line-regexp --fixed-strings "$line" "$plugstack" 2>/dev/null || echo "$line" >>"$plugstack"
    # The folder of prologs is there; a pattern that matches nothing would fail every job.
    install -d -m 700 "$shared"
}

install_packages
install_program
install_scripts
case $role in
head)
    include_plugins
    install_units isthmus-token.service isthmus-token.path isthmus-token.timer
    # It makes a token as soon as site.yml has published what a node is made of.
    systemctl enable --quiet --now isthmus-token.path isthmus-token.timer
    ;;
compute)
    install_units isthmus-await.service isthmus-await.timer
    # Before slurmd, where the cluster has Isthmus already: the node takes its first job with it. Else, and where
    # joining fails, the timer tries again; the node works for jobs without pod networks meanwhile.
    if ! "$prefix/parallelcluster/join.sh"; then
        say "not joined yet; isthmus-await.timer tries again"
        systemctl enable --quiet --now isthmus-await.timer
    fi
    ;;
esac
say "done"

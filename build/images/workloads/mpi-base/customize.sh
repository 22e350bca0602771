#!/bin/bash
# What pods of MPIJobs share: sshd for root and for the user mpiuser, each with the job's own key; ssh that waits; an
# mpirun whose exit status says when a worker was lost.
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi
home=/home/mpiuser

# No two clusters shall have the same keys; nobody can log in but by a job's key.
rm -f "$root"/etc/ssh/ssh_host_*
echo "mpiuser:x:1000:1000::$home:/bin/bash" >>"$root/etc/passwd"
echo 'mpiuser:*:20000:0:99999:7:::' >>"$root/etc/shadow"
echo mpiuser:x:1000: >>"$root/etc/group"
install -d -o 1000 -g 1000 -m 755 "$root$home"
mkdir -p "$root/run/sshd"

# The operator mounts the key with owners and modes that sshd calls too open.
settings() {
    printf '%s\n' 'Port 2222' "HostKey $1/.ssh/id_rsa" "AuthorizedKeysFile $1/.ssh/authorized_keys" \
        'StrictModes no' 'PasswordAuthentication no' 'KbdInteractiveAuthentication no' 'UsePAM no' 'PidFile none'
}
settings /root >"$root/etc/ssh/sshd_config.d/mpi.conf"
settings "$home" >"$root$home/.sshd_config"
cat >"$root/etc/ssh/ssh_config.d/mpi.conf" <<'SETTINGS'
Host *
    Port 2222
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    ServerAliveInterval 15
Match exec "/usr/local/bin/mpi-host own %h"
    ProxyCommand /usr/local/bin/mpi-host sshd
Match exec "/usr/local/bin/mpi-host await %h %p"
SETTINGS

cat >"$root/usr/local/bin/mpi-host" <<'SCRIPT'
#!/bin/bash
# What ssh asks before it connects:
#   mpi-host own HOST         whether that is this pod: MPICH and Intel MPI know it by its short name alone
#   mpi-host sshd             serve one connection on standard input, for the launcher has no sshd that listens
#   mpi-host await HOST PORT  wait for another one: workers start one after the other, and DNS names those that are ready
limit_s=${MPI_WAIT_S:-300}
case "$1 ${2:-}" in
own\ "$HOSTNAME" | own\ "$HOSTNAME".* | await\ "$HOSTNAME" | await\ "$HOSTNAME".*) exit 0 ;;
own\ *) exit 1 ;;
sshd\ *)
    ((UID == 0)) || settings=(-f "$(getent passwd "$UID" | cut -d : -f 6)/.sshd_config")
    exec /usr/sbin/sshd -i "${settings[@]}"
    ;;
esac
# Hydra's workers ask for the launcher by its name.
if [ -n "${HYDRA_HOST_FILE:-}${I_MPI_HYDRA_HOST_FILE:-}" ]; then
    until getent -s dns hosts "$HOSTNAME" >/dev/null || ((SECONDS >= 15)); do sleep 0.3; done
fi
until timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$2" "$3" 2>/dev/null; do
    if ((SECONDS >= limit_s)); then
        echo "no sshd answers at $2:$3 after $limit_s s (MPI_WAIT_S); \`kubectl get pods\` shows how that worker is" >&2
        exit 1
    fi
    sleep 0.3
done
SCRIPT
chmod 755 "$root/usr/local/bin/mpi-host"

[ -e "$root/usr/bin/prte" ] || exit 0
mkdir -p "$root/usr/local/lib/mpi"
cat >"$root/usr/local/lib/mpi/prterun" <<'SCRIPT'
#!/bin/bash
# What mpirun of Open MPI 5 runs. PRRTE (3.0 to 4.1) ends with 0 where it sees the connection of a worker's daemon close
# before it sees the end of that worker's ssh. So mpirun has ended well only if each ssh does too, with its daemon.
ends=$(mktemp -d) || exec -a "$0" /usr/bin/prte "$@"
trap 'rm -rf "$ends"' EXIT
export MPI_SSH_ENDS=$ends PRTE_MCA_plm_ssh_agent=${PRTE_MCA_plm_ssh_agent:-/usr/local/lib/mpi/ssh}
(exec -a "$0" /usr/bin/prte "$@") <&0 &
prte=$!
# A terminal sends its signals to both.
for signal in HUP TERM USR1 USR2; do
    # shellcheck disable=SC2064 # the id is known now
    trap "kill -$signal $prte" "$signal"
done
trap : INT QUIT
while :; do
    wait "$prte"
    status=$?
    kill -0 "$prte" 2>/dev/null || break
done
((status == 0)) || exit "$status"
for _ in {1..100}; do
    [ -e "$ends/lost" ] && break
    compgen -G "$ends/*" >/dev/null || exit 0
    sleep 0.1
done
echo 'mpirun: the connection to a worker was lost, see above; the exit status is 255' >&2
exit 255
SCRIPT
cat >"$root/usr/local/lib/mpi/ssh" <<'SCRIPT'
#!/bin/bash
# ssh as PRRTE starts it, for prterun beside it.
[ -d "${MPI_SSH_ENDS:-}" ] || exec /usr/bin/ssh "$@"
: >"$MPI_SSH_ENDS/$$"
/usr/bin/ssh "$@"
status=$?
if ((status == 255)); then # its own failure
    : >"$MPI_SSH_ENDS/lost"
fi
rm -f "$MPI_SSH_ENDS/$$"
exit "$status"
SCRIPT
chmod 755 "$root/usr/local/lib/mpi/prterun" "$root/usr/local/lib/mpi/ssh"
ln -sf ../local/lib/mpi/prterun "$root/usr/bin/prterun"

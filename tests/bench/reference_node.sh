#!/bin/bash
# Runs in a node of its own: a part of a plain Kubernetes with the official programs, which lie in /reference/bin.
#   control NAME=ADDRESS...               authority, control plane, DNS; credentials of these workers in /reference/NAME
#   worker CONTROL SUBNET [PEER=NET...]   containerd, kubelet, and a network of pods over VXLAN to the other workers; in
#                                         /reference/credentials are its own, in /reference/images archives NAME.tar with
#                                         NAME.name beside them
# All units are stopped afterwards, but containerd.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
part=$1
shift
here=/reference
address=$(ip -4 -o addr show eth0 | awk '{split($4, found, "/"); print found[1]}')
name=$(hostname)
etc=/etc/kubernetes
keys=$etc/pki
services=10.97.0.0/16
service=10.97.0.1
pods=10.245.0.0/16
mkdir -p $keys

packages() {
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
unit() { # name, what it comes after, more of the service, command
    printf '[Unit]\nAfter=network.target %s\n[Service]\n%s\nExecStart=%s\nRestart=always\nRestartSec=1\n' \
        "$2" "$3" "/usr/local/bin/${*:4}" >"/etc/systemd/system/$1.service"
}

certificate() { # file, subject, names
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA $keys/ca.crt -CAkey $keys/ca.key -CAcreateserial -days 30 -out "$1.crt" -extfile <(
        echo keyUsage=critical,digitalSignature
        echo extendedKeyUsage=serverAuth,clientAuth
        echo subjectKeyIdentifier=hash
        echo authorityKeyIdentifier=keyid
        [ -z "${3:-}" ] || echo "subjectAltName=$3"
    ) 2>/dev/null
}
kubeconfig() { # file, certificate and key without their ends
    config() { kubectl --kubeconfig="$file" config "$@" >/dev/null; }
    local file=$1
    config set-cluster reference --server="https://$address:6443" --certificate-authority=$keys/ca.crt --embed-certs
    config set-credentials user --client-certificate="$2.crt" --client-key="$2.key" --embed-certs
    config set-context reference --cluster=reference --user=user
    config use-context reference
}
authority() { # NAME=ADDRESS...
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -subj /CN=reference \
        -days 30 -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature 2>/dev/null
    certificate apiserver /CN=kube-apiserver "DNS:kubernetes.default.svc,DNS:$name,IP:$address,IP:127.0.0.1,IP:$service"
    certificate apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
    certificate admin /O=system:masters/CN=admin
    certificate controller-manager /CN=system:kube-controller-manager
    certificate scheduler /CN=system:kube-scheduler
    certificate etcd /CN=etcd IP:127.0.0.1
    openssl genrsa -out sa.key 2048 2>/dev/null
    openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
    for client in admin controller-manager scheduler; do
        kubeconfig $etc/$client.kubeconfig $client
    done
    for worker in "$@"; do
        local to=$here/${worker%=*}
        mkdir -p "$to"
        certificate "$to/kubelet" "/O=system:nodes/CN=system:node:${worker%=*}" "DNS:${worker%=*},IP:${worker#*=}"
        kubeconfig "$to/kubelet.kubeconfig" "$to/kubelet"
        cp ca.crt "$to/"
    done
}
control_units() {
    client() { echo "--kubeconfig=$etc/$1.kubeconfig --authentication-kubeconfig=$etc/$1.kubeconfig \
--authorization-kubeconfig=$etc/$1.kubeconfig --bind-address=127.0.0.1 --leader-elect=false --profiling=false"; }
    unit etcd '' Type=notify etcd --data-dir=/var/lib/etcd --listen-client-urls=https://127.0.0.1:2379 \
        --advertise-client-urls=https://127.0.0.1:2379 --cert-file=$keys/etcd.crt --key-file=$keys/etcd.key \
        --client-cert-auth --trusted-ca-file=$keys/ca.crt --log-level=warn
    unit kube-apiserver etcd.service TimeoutStopSec=15 kube-apiserver --advertise-address="$address" --secure-port=6443 \
        --service-cluster-ip-range=$services --tls-cert-file=$keys/apiserver.crt --tls-private-key-file=$keys/apiserver.key \
        --client-ca-file=$keys/ca.crt --etcd-servers=https://127.0.0.1:2379 --etcd-cafile=$keys/ca.crt \
        --etcd-certfile=$keys/etcd.crt --etcd-keyfile=$keys/etcd.key --kubelet-certificate-authority=$keys/ca.crt \
        --kubelet-client-certificate=$keys/apiserver-kubelet-client.crt \
        --kubelet-client-key=$keys/apiserver-kubelet-client.key --kubelet-preferred-address-types=InternalIP \
        --service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file=$keys/sa.pub \
        --service-account-signing-key-file=$keys/sa.key --authorization-mode=Node,RBAC \
        --enable-admission-plugins=NodeRestriction --anonymous-auth=false --allow-privileged=true --profiling=false
    # shellcheck disable=SC2046 # words
    unit kube-controller-manager kube-apiserver.service '' kube-controller-manager $(client controller-manager) \
        --use-service-account-credentials --service-account-private-key-file=$keys/sa.key --root-ca-file=$keys/ca.crt \
        --cluster-signing-cert-file=$keys/ca.crt --cluster-signing-key-file=$keys/ca.key --service-cluster-ip-range=$services
    # shellcheck disable=SC2046 # words
    unit kube-scheduler kube-apiserver.service '' kube-scheduler $(client scheduler)
    printf '.:53 {\n bind %s\n errors\n kubernetes cluster.local in-addr.arpa {\n kubeconfig %s reference\n }\n}\n' \
        "$address" $etc/admin.kubeconfig >$etc/Corefile
    unit coredns kube-apiserver.service '' coredns -conf $etc/Corefile
    # Not a pod: it would outlive a stop of the kubelet, and its restarts would be backed off from turn to turn.
    unit mpi-operator kube-apiserver.service '' mpi-operator -kubeConfig=$etc/admin.kubeconfig -kube-api-qps=50 \
        -kube-api-burst=100
}

pod_network() { # control plane, own subnet, PEER=NET...
    local control=$1 subnet=$2 peer mtu
    shift 2
    mtu=$(($(cat /sys/class/net/eth0/mtu) - 50))
    # No kube-proxy: of services pods use that of the API alone.
    sysctl -qw net.ipv4.ip_forward=1
    nft -f - <<END
table ip reference {
  chain services { type nat hook prerouting priority dstnat; ip daddr $service tcp dport 443 dnat to $control:6443; }
  chain out { type nat hook postrouting priority srcnat; ip saddr $subnet ip daddr != $pods masquerade; }
}
END
    if [ $# -gt 0 ]; then
        ip link add pods0 type vxlan id 97 dstport 4797 local "$address" dev eth0
        ip link set pods0 mtu "$mtu" up
        for peer in "$@"; do
            bridge fdb append 00:00:00:00:00:00 dev pods0 dst "${peer%=*}"
            # The peer's device answers for its bridge's address.
            ip route add "${peer#*=}" via "$(first "${peer#*=}")" dev pods0 onlink
        done
        ip addr add "$(first "$subnet")/32" dev pods0
    fi
    cat >/etc/cni/net.d/10-bridge.conflist <<END
{"cniVersion": "1.0.0", "name": "bridge", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "mtu": $mtu,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$subnet", "rangeStart": "$(first "$subnet" | sed 's/0$/10/')"}]],
   "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
}
first() { # The address of a worker in the pods' network is that of its subnet.
    echo "${1%/*}"
}
containerd_settings() {
    cat >/etc/containerd/config.toml <<END
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
END
    # Nobody here may raise a limit or lower an OOM score.
    printf '[Service]\nLimitNOFILE=%s\nLimitNPROC=\nLimitCORE=\nOOMScoreAdjust=0\n' "$(ulimit -Hn)" \
        >/etc/systemd/system/containerd.service.d/limits.conf
}
kubelet_settings() { # control plane
    cat >$etc/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $here/credentials/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $here/credentials/kubelet.crt
tlsPrivateKeyFile: $here/credentials/kubelet.key
clusterDomain: cluster.local
clusterDNS: [$1]
cgroupRoot: /
maxPods: 250
failSwapOn: false
oomScoreAdj: 0
enforceNodeAllocatable: [pods]
END
    unit kubelet 'containerd.service kube-apiserver.service' '' kubelet --config=$etc/kubelet.yaml \
        --kubeconfig=$here/credentials/kubelet.kubeconfig --node-ip="$address" --hostname-override="$name" --v=2
}

install -m 0755 "$here"/bin/* /usr/local/bin/
case $part in
control)
    cd $keys
    authority "$@"
    control_units
    systemctl daemon-reload
    ;;
worker)
    # Of these hierarchies of cgroup v1 the node has no group of its own: the kubelet would write into the machine's root.
    umount /sys/fs/cgroup/hugetlb /sys/fs/cgroup/net_cls,net_prio /sys/fs/cgroup/perf_event 2>/dev/null || true
    packages containerd runc containernetworking-plugins conntrack nftables
    systemctl stop containerd
    mkdir -p /etc/cni/net.d /opt/cni/bin /etc/containerd /etc/systemd/system/containerd.service.d
    cp /usr/lib/cni/* /opt/cni/bin/
    pod_network "$@"
    containerd_settings
    kubelet_settings "$1"
    systemctl daemon-reload
    systemctl restart containerd
    for archive in "$here"/images/*.tar; do
        ctr --namespace k8s.io images import --index-name "$(cat "${archive%.tar}.name")" "$archive" >/dev/null
    done
    systemctl restart containerd
    ;;
esac

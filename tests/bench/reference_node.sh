#!/bin/bash
# Runs in a node of its own: a plain Kubernetes with the official kubelet and containerd, control plane and worker in one.
# In /reference lie the programs, the archive of an image and the pause program; $1 is the image's name.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
image=$1
here=/reference
address=$(ip -4 -o addr show eth0 | awk '{split($4, found, "/"); print found[1]}')
name=$(hostname)
keys=/etc/kubernetes/pki
services=10.97.0.0/16
# Of these hierarchies of cgroup v1 the node has no group of its own: the kubelet would write into the machine's root.
umount /sys/fs/cgroup/hugetlb /sys/fs/cgroup/net_cls,net_prio /sys/fs/cgroup/perf_event 2>/dev/null || true
apt-get update -qq
apt-get install -y -qq --no-install-recommends containerd runc containernetworking-plugins conntrack openssl >/dev/null
systemctl stop containerd
install -m 0755 "$here"/bin/* /usr/local/bin/
mkdir -p $keys /etc/cni/net.d /opt/cni/bin /etc/containerd /etc/systemd/system/containerd.service.d
cp /usr/lib/cni/* /opt/cni/bin/
cd $keys

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -subj /CN=reference \
    -days 30 -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature 2>/dev/null
certificate() { # file, subject, names
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" -extfile <(
        echo keyUsage=critical,digitalSignature
        echo extendedKeyUsage=serverAuth,clientAuth
        echo subjectKeyIdentifier=hash
        echo authorityKeyIdentifier=keyid
        [ -z "${3:-}" ] || echo "subjectAltName=$3"
    ) 2>/dev/null
}
certificate apiserver /CN=kube-apiserver "DNS:kubernetes.default.svc,DNS:$name,IP:$address,IP:127.0.0.1,IP:10.97.0.1"
certificate apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
certificate admin /O=system:masters/CN=admin
certificate controller-manager /CN=system:kube-controller-manager
certificate scheduler /CN=system:kube-scheduler
certificate kubelet "/O=system:nodes/CN=system:node:$name" "DNS:$name,IP:$address"
certificate etcd /CN=etcd IP:127.0.0.1
openssl genrsa -out sa.key 2048 2>/dev/null
openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
for client in admin controller-manager scheduler kubelet; do
    config() { kubectl --kubeconfig=/etc/kubernetes/$client.kubeconfig config "$@" >/dev/null; }
    config set-cluster reference --server="https://$address:6443" --certificate-authority=ca.crt --embed-certs
    config set-credentials $client --client-certificate=$client.crt --client-key=$client.key --embed-certs
    config set-context reference --cluster=reference --user=$client
    config use-context reference
done

cat >/etc/cni/net.d/10-bridge.conflist <<END
{"cniVersion": "1.0.0", "name": "bridge", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.245.0.0/22"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
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
cat >/etc/kubernetes/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $keys/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $keys/kubelet.crt
tlsPrivateKeyFile: $keys/kubelet.key
clusterDomain: cluster.local
clusterDNS: [10.97.0.10]
cgroupRoot: /
maxPods: 250
failSwapOn: false
oomScoreAdj: 0
enforceNodeAllocatable: [pods]
END

unit() { # name, what it comes after, more of the service, command
    printf '[Unit]\nAfter=network.target %s\n[Service]\n%s\nExecStart=%s\nRestart=always\nRestartSec=1\n' \
        "$2" "$3" "/usr/local/bin/${*:4}" >"/etc/systemd/system/$1.service"
}
client() { echo "--kubeconfig=/etc/kubernetes/$1.kubeconfig --authentication-kubeconfig=/etc/kubernetes/$1.kubeconfig \
--authorization-kubeconfig=/etc/kubernetes/$1.kubeconfig --bind-address=127.0.0.1 --leader-elect=false --profiling=false"; }
unit etcd '' Type=notify etcd --data-dir=/var/lib/etcd --listen-client-urls=https://127.0.0.1:2379 \
    --advertise-client-urls=https://127.0.0.1:2379 --cert-file=$keys/etcd.crt --key-file=$keys/etcd.key \
    --client-cert-auth --trusted-ca-file=$keys/ca.crt --log-level=warn
unit kube-apiserver etcd.service '' kube-apiserver --advertise-address="$address" --secure-port=6443 \
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
unit kubelet 'containerd.service kube-apiserver.service' '' kubelet --config=/etc/kubernetes/kubelet.yaml \
    --kubeconfig=/etc/kubernetes/kubelet.kubeconfig --node-ip="$address" --hostname-override="$name" --v=2
systemctl daemon-reload
systemctl restart containerd
ctr --namespace k8s.io images import --index-name localhost/pause:1 "$here/pause.tar" >/dev/null
ctr --namespace k8s.io images import --index-name "$image" "$here/image.tar" >/dev/null
systemctl restart containerd

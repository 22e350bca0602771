#!/bin/bash
# On the control plane of the plain Kubernetes:  reference start|stop
# Returns when all of it, workers as well, is ready or down. In /reference (REFERENCE) are the workers' addresses.
set -euo pipefail
here=${REFERENCE:-/reference}
units=(etcd kube-apiserver kube-controller-manager kube-scheduler coredns mpi-operator)
mapfile -t workers <"$here/workers"
export KUBECONFIG=/etc/kubernetes/admin.kubeconfig

on_workers() {
    local worker pid pids=()
    for worker in "${workers[@]}"; do
        ssh -q -i "$here/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "root@$worker" "$@" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
}
# What is known of nodes may be from before they were stopped: each must have said since that it is there.
are_ready() {
    local renewed states
    renewed=$(kubectl get leases --namespace kube-node-lease \
        --output 'jsonpath={range .items[*]}{.spec.renewTime}{"\n"}{end}' | awk -v since="$since" '$1 > since' | wc -l)
    states=$(kubectl get nodes --output \
        'jsonpath={range .items[*]}{.spec.taints}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' | grep -c '^True$')
    ((renewed == ${#workers[@]} && states == ${#workers[@]}))
}

case ${1:-} in
start)
    since=$(date --utc +%Y-%m-%dT%H:%M:%S)
    systemctl start "${units[@]}"
    on_workers systemctl start containerd kubelet
    until are_ready 2>/dev/null; do
        if ((SECONDS > ${LIMIT_S:-120})); then
            kubectl get nodes >&2 || true
            echo "the workers are not ready after $SECONDS s; see the journal of kubelet there" >&2
            exit 1
        fi
        sleep 0.5
    done
    ;;
stop)
    on_workers systemctl stop kubelet containerd
    systemctl stop mpi-operator
    # Or its next start waits until this runs out. Nobody answers where all is down already.
    kubectl delete lease --namespace mpi-operator mpi-operator --request-timeout=5s >/dev/null 2>&1 || true
    # An API server whose etcd ends before it takes minutes to end.
    systemctl stop "${units[@]:1}"
    systemctl stop etcd
    # The kubelet has written them.
    sysctl --quiet --load "$here/sysctl.conf"
    ;;
*)
    echo "usage: reference start|stop" >&2
    exit 2
    ;;
esac

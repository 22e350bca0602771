#!/bin/bash
# Gives a running box a hypervisor that boots guests: libvirt with QEMU's own translation, which needs no /dev/kvm. Runs
# in the box, as root, and may run again. Argument: the address that guests have as their gateway, with its prefix.
set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
gateway=$1

printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt-get -qq update </dev/null
apt-get -qq install -y --no-install-recommends ipxe-qemu libvirt-clients libvirt-daemon-driver-qemu \
    libvirt-daemon-system python3-libvirt qemu-system-x86 qemu-utils seabios </dev/null >/dev/null
rm /usr/sbin/policy-rc.d

# A container has no cgroups, namespaces and labels to give away.
cat >/etc/libvirt/qemu.conf <<'END'
security_driver = "none"
cgroup_controllers = [ ]
namespaces = [ ]
seccomp_sandbox = 0
remember_owner = 0
max_core = 0
END
usermod -aG libvirt,kvm nova

install -d -o nova -g nova /var/lib/nova-compute/guests{,/instances}
helper="sudo /usr/bin/privsep-helper --config-file /etc/nova/nova.conf --config-file /etc/nova/compute.conf"
install -m 640 -g nova /dev/stdin /etc/nova/compute.conf <<END
[DEFAULT]
compute_driver = libvirt.LibvirtDriver
force_config_drive = true
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
reserved_host_memory_mb = 512
[libvirt]
virt_type = qemu
cpu_mode = none
hw_machine_type = x86_64=q35
inject_partition = -2
# A disk that is thrown away need not be written out.
disk_cachemodes = file=unsafe
[nova_sys_admin]
helper_command = $helper
[vif_plug_linux_bridge_privileged]
helper_command = $helper
END

# No agent of neutron's is there to route: each bridge that nova makes for a network gets the gateway's address. networkd
# would wait for an udev that a container does not have.
cat >/usr/local/sbin/guests-gateway <<END
#!/bin/bash
while sleep 1; do
    for bridge in /sys/class/net/brq*; do
        [ ! -e "\$bridge" ] || ip address replace $gateway dev "\${bridge##*/}"
    done
done
END
chmod 755 /usr/local/sbin/guests-gateway
cat >/etc/systemd/system/guests-gateway.service <<END
[Unit]
Description=The gateway of guests
[Service]
ExecStart=/usr/local/sbin/guests-gateway
END
sysctl -qw net.ipv4.ip_forward=1
systemctl daemon-reload
systemctl start guests-gateway
systemctl enable --quiet --now virtlogd.socket libvirtd
systemctl disable --quiet --now nova-compute@compute{1..4}
systemctl restart nova-compute@guests

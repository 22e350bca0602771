#!/bin/bash
# Makes OpenStack of the packages that are installed; runs in the box, as root, and may run again. Arguments: the box's
# address, the region.
set -euo pipefail
export LC_ALL=C.UTF-8
address=$1 region=$2
here=$(dirname "$0")

python3 "$here/configure.py" "$address" "$region"
password=$(cat /root/password)

systemctl daemon-reload
systemctl enable --quiet --now mariadb memcached rabbitmq-server
rabbitmqctl -q add_user openstack "$password" 2>/dev/null || rabbitmqctl -q change_password openstack "$password"
rabbitmqctl -q set_permissions openstack '.*' '.*' '.*'
for db in keystone glance placement nova_api nova nova_cell0 neutron cinder; do
    echo "CREATE DATABASE IF NOT EXISTS $db; GRANT ALL ON $db.* TO 'openstack'@'127.0.0.1' IDENTIFIED BY '$password';"
done | mariadb

as() {
    local user=$1
    shift
    runuser -u "$user" -- "$@"
}

nova_schema() {
    as nova nova-manage api_db sync
    as nova nova-manage cell_v2 map_cell0 --database_connection "mysql+pymysql://openstack:$password@127.0.0.1/nova_cell0"
    as nova nova-manage cell_v2 list_cells | grep -q cell1 || as nova nova-manage cell_v2 create_cell --name=cell1
    as nova nova-manage db sync
}

schemas=()
in_background() {
    "$@" >"/var/log/schema-$1-$2.log" 2>&1 &
    schemas+=($!)
}
in_background as keystone keystone-manage db_sync
in_background as glance glance-manage db_sync
in_background as placement placement-manage db sync
in_background as neutron neutron-db-manage --config-file /etc/neutron/neutron.conf \
    --config-file /etc/neutron/plugins/ml2/ml2_conf.ini upgrade heads
in_background as cinder cinder-manage db sync
in_background nova_schema nova
for each in "${schemas[@]}"; do
    wait "$each" || { tail -n 5 /var/log/schema-*.log; exit 1; }
done

keystone-manage fernet_setup --keystone-user keystone --keystone-group keystone
keystone-manage credential_setup --keystone-user keystone --keystone-group keystone
url=http://$address:5000/v3
as keystone keystone-manage bootstrap --bootstrap-password "$password" --bootstrap-username admin --bootstrap-project-name admin \
    --bootstrap-region-id "$region" --bootstrap-public-url "$url" --bootstrap-internal-url "$url" --bootstrap-admin-url "$url"

# conductor and scheduler ask for the services' users at once: first keystone with these, then the rest.
systemctl disable --quiet --now nova-api-metadata 2>/dev/null || true
systemctl enable --quiet --now keystone
python3 "$here/catalog.py" users
systemctl enable --quiet --now placement-api glance-api neutron-api nova-api nova-conductor nova-scheduler \
    cinder-api cinder-scheduler cinder-volume nova-compute@compute{1..4}
python3 "$here/catalog.py" content

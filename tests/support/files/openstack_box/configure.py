"""Writes the box's configuration: the files below etc/ with address, region and password put in, within the container.

The password is made here and stays here; clouds.yaml, 0600, is how the deployer gets it.
"""

import secrets
import shutil
import sys
from pathlib import Path
from string import Template

HERE = Path(__file__).parent
PASSWORD = Path("/root/password")
PACKAGES = Path("/usr/local/lib/python3.13/dist-packages")
SERVICES = ("keystone", "glance", "placement", "nova", "neutron", "cinder")
# Debian's have 8 or 16 processes each, two of them close connections without notice, and neutron's lets no thread run
# between two requests, of which it sends its events.
UWSGI = {"processes": "2", "threads": "1", "enable-threads": "true", "add-header": "Connection: close"}
# A server takes some twenty requests of neutron's: with two processes all waited for these.
MORE = {"neutron-api-uwsgi.ini": {"processes": "4"}}
LOGIN = """auth_type = password
auth_url = http://{address}:5000/v3
project_domain_name = Default
user_domain_name = Default
project_name = service
region_name = {region}
username = {user}
password = {password}"""
CLOUDS = """clouds:
{clouds}
"""
CLOUD = """  {name}:
    auth: {{auth_url: "http://{address}:5000/v3", username: {user}, password: {password}, project_name: {project},
      user_domain_name: Default, project_domain_name: Default}}
    region_name: {region}
    identity_api_version: 3
    interface: public"""


def password():
    """Return the box's password; a second run keeps it."""
    if not PASSWORD.exists():
        PASSWORD.touch(0o600)
        PASSWORD.write_text(secrets.token_hex(16))
    return PASSWORD.read_text()


def values(address, region):
    """Return what the files name."""
    secret = password()
    given = {"address": address, "region": region, "password": secret}
    logins = {f"as_{user}": LOGIN.format(user=user, **given) for user in SERVICES}
    database = f"mysql+pymysql://openstack:{secret}@127.0.0.1"
    return {**given, **logins, "database": database, "queue": f"rabbit://openstack:{secret}@127.0.0.1:5672/"}


def write(path, owner, text):
    """Write a file that only its service reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if owner in SERVICES:
        shutil.chown(path, "root", owner)
        path.chmod(0o640)


def authtoken(user, given):
    """Return how a service asks keystone about the tokens it gets."""
    place = f"http://{given['address']}:5000/v3"
    return f"www_authenticate_uri = {place}\nmemcached_servers = 127.0.0.1:11211\n{given.get(f'as_{user}', '')}"


def configure(address, region):
    """Write all."""
    given = values(address, region)
    for source in (path for path in (HERE / "etc").rglob("*") if path.is_file()):
        place = Path("/") / source.relative_to(HERE)
        owner = place.parts[2]
        text = Template(source.read_text()).substitute(given, authtoken=authtoken(owner, given))
        write(place, owner, text)
    for path in Path("/etc").glob("*/*-uwsgi.ini"):
        settings = UWSGI | MORE.get(path.name, {})
        kept = [line for line in path.read_text().splitlines() if line.split(" = ")[0] not in settings]
        path.write_text("\n".join([*kept, *(f"{key} = {value}" for key, value in settings.items())]) + "\n")
    for module in ("box_ml2.py", "box_cinder.py"):
        shutil.copy(HERE / module, PACKAGES)
    points = "[neutron.ml2.mechanism_drivers]\nbox = box_ml2:BoxMechanismDriver\n"
    write(PACKAGES / "box_ml2-1.dist-info/METADATA", "", "Metadata-Version: 2.1\nName: box-ml2\nVersion: 1\n")
    write(PACKAGES / "box_ml2-1.dist-info/entry_points.txt", "", points)
    users = {"box": "hpc", "box-admin": "admin"}
    clouds = [CLOUD.format(name=name, user=user, project=user, **given) for name, user in users.items()]
    path = Path("/etc/openstack/clouds.yaml")
    path.parent.mkdir(exist_ok=True)
    path.touch(0o600)
    path.write_text(CLOUDS.format(clouds="\n".join(clouds)))


if __name__ == "__main__":
    configure(*sys.argv[1:])

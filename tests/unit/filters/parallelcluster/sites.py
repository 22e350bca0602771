"""Sites for the tests of this folder."""

from copy import deepcopy

SUBNET = "subnet-0123456789abcdef0"
OTHER = "subnet-0123456789abcdef1"
SECRET = "arn:aws:secretsmanager:us-east-1:111111111111:secret:any"  # noqa: S105 - the name of a secret

SMALL = {
    "cluster": "lab1",
    "managed": False,
    "nodes": {"ctl": {"group": "controller"}, "cpu": {"group": "compute", "count": 2}},
    "partitions": [{"name": "batch", "nodes": ["compute"], "default": True}],
    "slurm": {},
    "region": "us-east-1",
    "key_name": "admin",
    "bucket": "site-isthmus",
    "prefix": "isthmus/lab1",
    "image": "",
    "head": {"instance_type": "t3.medium", "subnet": SUBNET},
    "login": {},
    "kinds": {"cpu": {"instance_types": ["t3.small"]}},
    "storage": [],
    "directory": {},
    "database": {},
    "update": "DRAIN",
    "idle_min": 10,
    "timeout_s": 2100,
    "tags": {},
    "settings": {},
}

LARGE = SMALL | {
    "nodes": {
        "ctl": {"group": "controller"},
        "login": {"group": "login", "count": 2},
        "cpu": {"group": "compute", "count": 8},
        "bigmem": {"group": "compute", "count": 2},
        "ampere": {"group": "compute", "count": 2},
    },
    "partitions": [
        {"name": "gpu", "nodes": ["ampere"], "max_time": "12:00:00", "options": {"PriorityTier": 10}},
        {"name": "batch", "nodes": ["cpu", "bigmem"], "default": True},
    ],
    "slurm": {"SlurmdTimeout": 300, "MpiDefault": "pmix"},
    "image": "ami-0123456789abcdef0",
    "head": {
        "instance_type": "c7i.xlarge",
        "subnet": SUBNET,
        "volume_gib": 100,
        "settings": {"Imds": {"Secured": True}},
    },
    "login": {"instance_type": "t3.medium", "policy": "arn:aws:iam::111111111111:policy/read"},
    "kinds": {
        "cpu": {
            "instance_types": ["c7i.4xlarge", "c7a.4xlarge"],
            "min": 1,
            "subnets": [OTHER],
            "memory_mib": 30000,
        },
        "bigmem": {"instance_types": ["r7i.8xlarge"], "subnets": [OTHER], "weight": 10},
        "ampere": {
            "partition": "gpu",
            "instance_types": ["p4d.24xlarge"],
            "efa": True,
            "spot": True,
            "settings": {"Networking": {"PlacementGroup": {"Enabled": True}}},
        },
    },
    "storage": [
        {"name": "home", "mount": "/home", "type": "Efs", "settings": {"FileSystemId": "fs-0123456789abcdef0"}},
        {"name": "scratch", "mount": "/scratch", "type": "FsxLustre", "settings": {"StorageCapacity": 1200}},
    ],
    "directory": {
        "domain": "dc=example,dc=org",
        "servers": ["ldaps://one.example.org", "ldaps://two.example.org"],
        "user": "cn=reader,dc=example,dc=org",
        "password_secret": SECRET,
    },
    "database": {"uri": "db.example.org:3306", "user": "slurm", "password_secret": SECRET},
    "tags": {"project": "lab"},
    "settings": {"Monitoring": {"Alarms": {"Enabled": False}}},
}


def small(**changes):
    return deepcopy(SMALL) | changes


def large(**changes):
    return deepcopy(LARGE) | changes

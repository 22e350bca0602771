"""A layer is one noun everywhere, or nowhere."""

import re

from isthmus.filters.validate.names import HOST_GROUPS, LAYERS
from tests.repo import tree

# Names that are no layer. A new one needs a reason.
ROLES = {
    "artifacts",
    "backup",
    "bundle",
    "ca",
    "etcd",
    "image",
    "join",
    "kubernetes_job",
    "main_job",
    "nodes",
    "provider_local",
    "provider_openstack",
    "provider_parallelcluster",
    "registry",
    "upgrade",
}
PLAYBOOKS = {
    "add_nodes",
    "adopt_secrets",
    "artifacts",
    "backup",
    "benchmark",
    "bundle",
    "conformance",
    "conformance_mpi",
    "create",
    "drain",
    "image",
    "join",
    "main_job",
    "patch",
    "publish",
    "reconfigure",
    "remove_nodes",
    "renew_certificates",
    "restore",
    "teardown",
    "upgrade",
    "upgrade_etcd",
    "upgrade_slurm",
    "validate",
    "verify",
}
SCENARIOS = {"default", "alternative", "existing", "adopted", "parallelcluster", "private", "upgrade"}
# Pages of administrators that are about no layer.
DOCS = {
    "apptainer-unpack",
    "artifacts",
    "cni",
    "encryption",
    "flannel",
    "growing",
    "index",
    "install",
    "ipv6",
    "joining",
    "limits",
    "local",
    "node-images",
    "openstack",
    "operations",
    "providers",
    "parallelcluster",
    "registry",
    "routed",
    "runbooks",
    "security",
    "supported-systems",
    "upgrades",
}


def groups():
    return tree.load(tree.ROOT / "inventories/common/groups.yml")["all"]["children"]


def places():
    return {
        "role": tree.names("roles") - ROLES,
        "playbook": tree.names("playbooks", "*.yml") - PLAYBOOKS,
        "molecule scenario": tree.names("molecule") - SCENARIOS,
        "system tests": {name for name in tree.names("tests/system") if name in LAYERS},
        "docs page": tree.names("docs/admins", "*.md") - DOCS,
        "inventory group": set(groups()) - set(HOST_GROUPS),
    }


def test_layer_is_everywhere_or_nowhere():
    begun = set.union(*places().values())
    missing = [f"{layer} has no {kind}" for kind, found in places().items() for layer in begun - found]
    assert not missing


def test_other_names_are_listed():
    unknown = [f"{kind} {name}" for kind, found in places().items() for name in found - set(LAYERS)]
    assert not unknown


def test_site_runs_layers_in_order():
    imported = re.findall(r"playbooks/(\w+)\.yml", (tree.ROOT / "site.yml").read_text())
    assert imported[0] == "validate"
    assert [name for name in imported if name in LAYERS] == [name for name in LAYERS if name in groups()]


def test_new_nodes_get_every_layer():
    plays = tree.load(tree.ROOT / "playbooks/add_nodes.yml")
    given = {role["role"] for play in plays for role in play.get("roles", ())}
    assert given >= set(LAYERS) & set(groups())


def test_import_contracts_name_every_package():
    packages = {path.parent.name for path in tree.files("src/isthmus/*/__init__.py")}
    reported = set(re.findall(r"isthmus\.(\w+)", (tree.ROOT / ".importlinter").read_text()))
    assert {path for path in packages if (tree.ROOT / "src/isthmus" / path).is_dir()} == reported


def test_scenario_of_a_layer_verifies_it_and_what_it_needs():
    begun = [name for name in LAYERS if name in groups()]
    for place, layer in enumerate(begun):
        reported = tree.load(tree.ROOT / "molecule" / layer / "molecule.yml")["ansible"]["env"]["VERIFY_TESTS"]
        assert reported.split() == [f"tests/system/{name}" for name in begun[: place + 1]]

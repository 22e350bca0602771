"""The inventory `cluster_nodes`: a shim over `isthmus.filters.provider.inventory`."""

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin
from ansible.template import trust_as_template

from isthmus.filters.errors import InputError
from isthmus.filters.provider.inventory import PLUGIN, cluster_inventory

DOCUMENTATION = """
name: cluster_nodes
short_description: Hosts and groups of the nodes that a provider makes
description: docs/admins/openstack.md says what the file has.
options:
  plugin: {description: This plugin's name., required: true, choices: [cluster_nodes]}
"""


class InventoryModule(BaseInventoryPlugin):  # type: ignore[misc]
    """What Ansible looks for in this file."""

    NAME = PLUGIN

    def verify_file(self, path: str) -> bool:
        """Take YAML files; `auto` reads the name of the plugin in them."""
        return super().verify_file(path) and Path(path).suffix in (".yml", ".yaml")

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Put what the file says into the inventory."""
        super().parse(inventory, loader, path, cache)
        try:
            found = cluster_inventory(loader.load_from_file(path, cache="none", trusted_as_template=True))
        except InputError as error:
            raise AnsibleParserError(f"{path}: {error}") from error
        for host, variables in found["hosts"].items():
            inventory.add_host(host)
            for name, value in variables.items():
                # What the file says may be a template; an address that follows from it is as trusted.
                inventory.set_variable(host, name, trust_as_template(value) if isinstance(value, str) else value)
        for group, hosts in found["groups"].items():
            inventory.add_group(group)
            for host in hosts:
                inventory.add_host(host, group)
        for name, value in found["variables"].items():
            inventory.set_variable("all", name, value)

"""The module `image_sources`: what this machine's apt takes packages from; it changes nothing, filters read it."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

ASKED = {
    "sources": ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI) $(COMPONENT)", "Created-By: Packages"],
    "apt": ["apt-config", "dump", "--no-empty", "Acquire"],
}


def main() -> None:
    """Ask."""
    module = AnsibleModule({}, supports_check_mode=True)
    output = {name: str(module.run_command(argv, check_rc=True)[1]) for name, argv in ASKED.items()}
    module.exit_json(changed=False, **output)


if __name__ == "__main__":
    main()

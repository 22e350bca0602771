"""The module `slurm_answers`: what several commands print, by name, in one go; it is for those that only ask."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Ask; the first that fails ends it."""
    module = AnsibleModule({"commands": {"type": "dict", "required": True}}, supports_check_mode=True)
    answers = {}
    for name, argv in module.params["commands"].items():
        code, out, error = module.run_command(argv)
        if code:
            module.fail_json(msg=f"{' '.join(argv)} failed: {(error or out).strip()}; run it on this host")
        answers[name] = out.strip("\n")
    module.exit_json(changed=False, answers=answers)


if __name__ == "__main__":
    main()

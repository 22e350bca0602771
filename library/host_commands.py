"""The module `host_commands`: several commands in their order, in one go; the first that fails ends it.

`ansible.builtin.command` in a loop goes to the host for each of them: a thousand users would take minutes. For commands
that change something; which these are the caller has found out.
"""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Run them; a check run only says which."""
    options = {"commands": {"type": "list", "elements": "list", "required": True}}
    module = AnsibleModule(options, supports_check_mode=True)
    commands = [[str(word) for word in argv] for argv in module.params["commands"]]
    lines = [" ".join(argv) for argv in commands]
    for number, argv in enumerate([] if module.check_mode else commands):
        code, out, error = module.run_command(argv)
        if code:
            said = (error or out).strip() or f"it ended with status {code}"
            module.fail_json(msg=f"{lines[number]} failed: {said}", done=lines[:number], changed=number > 0)
    module.exit_json(changed=bool(commands), done=lines)


if __name__ == "__main__":
    main()

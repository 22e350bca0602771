"""The task `ca_certificate`: a host's key and certificate, in one trip where both stay, in two where it is signed."""

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from isthmus.filters.errors import InputError
from isthmus.filters.trust import authority
from isthmus.filters.trust.ca import ca_certificate_fits, ca_request_is_as_wanted

REFUSED = (
    "the host's request for a certificate has other names or uses than its role gives it, and nothing was signed:"
    " look who has changed programs on that host"
)
ASKED = ("files", "owner", "group", "common_name", "organization", "dns", "addresses", "usages")


class ActionModule(ActionBase):
    """What Ansible looks for in this file."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the host, and sign what it asks for where what it has does not fit.

        Arguments are those of the module `ca_request`, and authority (path of key and certificate, without suffix),
        signers (PEM, who may have signed what stays), days, renew_before_days, force. `lacks` is true where the host
        has no python3-cryptography yet.
        """
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = self._task.args
        asked = self._execute_module("ca_request", {key: args[key] for key in ASKED}, task_vars=task_vars)
        if asked.get("failed"):
            return result | asked
        lacks = not asked["csr"]
        fits = not (lacks or args["force"]) and self._fits(asked)
        changed = bool(asked["changed"] or lacks or not fits)
        if fits or lacks or self._task.check_mode:
            return result | {"changed": changed, "lacks": lacks}
        if not ca_request_is_as_wanted(asked["csr"], self._wanted()):
            return result | {"failed": True, "msg": REFUSED}
        try:
            files = str(args["authority"])
            made = authority.sign(asked["csr"], Path(f"{files}.crt").read_text(), f"{files}.key", int(args["days"]))
        except OSError as error:
            return result | {"failed": True, "msg": f"{error.filename}: {error.strerror}; run playbooks/apptainer.yml"}
        except InputError as error:
            return result | {"failed": True, "msg": str(error)}
        file = {"path": f"{args['files']}.crt", "content": made, "owner": args["owner"], "group": args["group"]}
        placed = self._execute_module("host_files", {"files": [file]}, task_vars=task_vars)
        return result | placed | {"changed": True, "lacks": False}

    def _fits(self, asked: dict[str, Any]) -> bool:
        args = self._task.args
        return ca_certificate_fits(asked, args["signers"], self._wanted(), int(args["renew_before_days"]))

    def _wanted(self) -> dict[str, Any]:
        args = self._task.args
        names = [f"DNS:{name}" for name in args["dns"]] + [f"IP:{address}" for address in args["addresses"]]
        return {key: args[key] for key in ("common_name", "organization", "usages")} | {"names": names}

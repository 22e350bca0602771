"""The module `ca_request`: a host's key, made where there is none, and a certificate request for it; in one trip.

The key never leaves the host. What the host had before comes back too, by which the deployer decides whether it signs.
Needs python3-cryptography on the host: without it there is no request.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    x509 = None

LIST = {"type": "list", "elements": "str", "default": []}
ARGUMENTS = {
    "files": {"type": "path", "required": True},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "common_name": {"type": "str", "default": ""},
    "organization": {"type": "str", "required": True},
    "dns": LIST,
    "addresses": LIST,
    "usages": {"type": "list", "elements": "str", "choices": ["serverAuth", "clientAuth"], "required": True},
}


def new_key() -> bytes:
    """Return a key on the curve P-256, PEM."""
    kind = serialization.PrivateFormat.TraditionalOpenSSL
    made = ec.generate_private_key(ec.SECP256R1())
    return made.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())


def readable(path: Path) -> Any:
    """Return the key of a file; None for none that can be used."""
    try:
        return serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError):
        return None


def public_half(key: Any) -> str:
    """Return a key's public half, PEM."""
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return str(key.public_key().public_bytes(serialization.Encoding.PEM, kind).decode())


def is_kept(path: Path, owner: str, group: str, mode: int) -> bool:
    """Return whether a file or folder is there, its owner's, with this mode."""
    try:
        found = path.stat()
        ids = (pwd.getpwnam(owner).pw_uid, grp.getgrnam(group).gr_gid)
    except (FileNotFoundError, KeyError):
        return False
    return (found.st_uid, found.st_gid) == ids and stat.S_IMODE(found.st_mode) == mode


def had(key: Path, certificate: Path, owner: str, group: str) -> dict[str, Any]:
    """Return what the host has before this run: kept, public_key and certificate, "" for none."""
    found = readable(key) if x509 else None
    return {
        "kept": is_kept(key.parent, "root", "root", 0o755)
        and is_kept(key, owner, group, 0o600)
        and is_kept(certificate, owner, group, 0o644),
        "public_key": public_half(found) if found else "",
        "certificate": certificate.read_text(errors="replace") if certificate.is_file() else "",
    }


def keep(path: Path, content: bytes, owner: str, group: str) -> None:
    """Write a key whole or not at all; nobody but its owner may read it at any moment."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    shutil.chown(temporary, owner, group)
    temporary.replace(path)


def request(key: Any, asked: dict[str, Any]) -> str:
    """Return a request (RFC 2986), PEM, with names and usages as extensions."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, asked["organization"])]
    if asked["common_name"]:
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, asked["common_name"]))
    usages = {"serverAuth": ExtendedKeyUsageOID.SERVER_AUTH, "clientAuth": ExtendedKeyUsageOID.CLIENT_AUTH}
    unused = {name: False for name in _USES if name != "digital_signature"}
    made = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name(subject))
        .add_extension(x509.KeyUsage(digital_signature=True, **unused), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usages[name] for name in asked["usages"]]), critical=False)
    )
    names = [x509.DNSName(name) for name in asked["dns"]]
    names += [x509.IPAddress(ip_address(address)) for address in asked["addresses"]]
    if names:
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return str(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode())


_USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def main() -> None:
    """Make what is missing; return the request, and what was there before."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    asked, path = module.params, Path(module.params["files"] + ".key")
    owned = asked["owner"], asked["group"]
    before = had(path, path.with_suffix(".crt"), *owned)
    if x509 is None:
        module.exit_json(changed=False, csr="", **before)
    try:
        key = readable(path)
        changed = key is None
        if not module.check_mode:
            path.parent.mkdir(parents=True, exist_ok=True)
        if key is None:
            content = new_key()
            key = serialization.load_pem_private_key(content, None)
            if not module.check_mode:
                keep(path, content, asked["owner"], asked["group"])
        for each, owner, group, mode in ((path.parent, "root", "root", "0755"), (path, *owned, "0600")):
            if each.exists():
                output = {"path": str(each), "owner": owner, "group": group, "mode": mode}
                changed = module.set_fs_attributes_if_different(module.load_file_common_arguments(output), changed)
    except (OSError, LookupError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, csr=request(key, asked), **before)


if __name__ == "__main__":
    main()

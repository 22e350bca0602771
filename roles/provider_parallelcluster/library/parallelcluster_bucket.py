"""The module `parallelcluster_bucket`: what nodes begin with is brought to the site's bucket.

An archive lies under its own sha256, and one small object, `current`, says which counts: nodes that boot meanwhile get
the old or the new one, never a half. Nothing in the bucket is secret: any user of a node may read it with the
node's role. Archives but the newest two are removed.

Subnets, the bucket, secrets and the site's own scripts are asked for here, since ParallelCluster's validators miss some
that are not there, and report the others only after the bucket was written to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import file_digest
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

ARGUMENTS = {
    "region": {"type": "str", "required": True},
    "bucket": {"type": "str", "required": True},
    "prefix": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["checked", "present", "absent"], "required": True},
    "texts": {"type": "dict", "default": {}},
    "archive": {"type": "path"},
    "subnets": {"type": "list", "elements": "str", "default": []},
    "secrets": {"type": "list", "elements": "str", "default": []},
    "objects": {"type": "list", "elements": "str", "default": []},
}
CURRENT, CONTENT = "current", "content"
OWN = ("bootstrap.sh", "image.sh", CURRENT)
KEPT = 2


def sha256(path: str) -> str:
    """A file's digest."""
    with Path(path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


class Bucket:
    """A folder of the site's bucket."""

    def __init__(self, session: Any, name: str, prefix: str) -> None:
        self.client, self.name, self.prefix = session.client("s3"), name, prefix.strip("/")

    def key(self, *parts: str) -> str:
        """An object's key."""
        return "/".join([self.prefix, *parts])

    def text(self, *parts: str) -> str:
        """An object's text, "" for none."""
        from botocore.exceptions import ClientError

        try:
            body: bytes = self.client.get_object(Bucket=self.name, Key=self.key(*parts))["Body"].read(1 << 20)
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "404"):
                return ""
            raise
        return body.decode()

    def listed(self, *parts: str) -> list[dict[str, Any]]:
        """Objects below, the newest in front."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=self.key(*parts) + "/")
        found = [each for page in pages for each in page.get("Contents", [])]
        return sorted(found, key=lambda each: each["LastModified"], reverse=True)

    def bring(self, texts: dict[str, str], archive: str, check: bool) -> list[str]:
        """Bring what differs; `current` comes last."""
        digest = sha256(archive)
        wanted = {**texts, CURRENT: f"{digest}\n"}
        content = self.key(CONTENT, f"{digest}.tar")
        there = {each["Key"] for each in self.listed(CONTENT)}
        changed = [key for key in [content] if key not in there]
        changed += [self.key(name) for name, text in wanted.items() if self.text(name) != text]
        if not check:
            if content in changed:
                self.client.upload_file(archive, self.name, content)
            for name, text in wanted.items():
                if self.key(name) in changed:
                    self.client.put_object(Bucket=self.name, Key=self.key(name), Body=text.encode())
            self._prune(content)
        return changed

    def _prune(self, content: str) -> None:
        for each in [each for each in self.listed(CONTENT) if each["Key"] != content][KEPT - 1 :]:
            self.client.delete_object(Bucket=self.name, Key=each["Key"])

    def remove(self, check: bool) -> list[str]:
        """Remove what `bring` brought, and nothing else."""
        own, content = [self.key(name) for name in OWN], self.key(CONTENT, "")
        keys = [key for each in self.listed() if (key := each["Key"]) in own or key.startswith(content)]
        for key in [] if check else keys:
            self.client.delete_object(Bucket=self.name, Key=key)
        return keys


def place(url: str) -> dict[str, str]:
    """Bucket and key of an object's URL."""
    bucket, _, key = url.removeprefix("s3://").partition("/")
    return {"Bucket": bucket, "Key": key}


def lacking(session: Any, params: dict[str, Any]) -> Iterator[str]:
    """What is named and not there, or not to be read."""
    ec2, secrets, s3 = (session.client(name) for name in ("ec2", "secretsmanager", "s3"))
    looks: list[tuple[str, Callable[[], object]]] = [
        (f"subnet {subnet}", lambda subnet=subnet: ec2.describe_subnets(SubnetIds=[subnet]))
        for subnet in dict.fromkeys(params["subnets"])
    ]
    looks += [
        (f"secret {secret}", lambda secret=secret: secrets.describe_secret(SecretId=secret))
        for secret in dict.fromkeys(params["secrets"])
        if ":secretsmanager:" in secret
    ]
    looks.append((f"bucket {params['bucket']}", lambda: s3.head_bucket(Bucket=params["bucket"])))
    looks += [(f"object {url}", lambda url=url: s3.head_object(**place(url))) for url in params["objects"]]
    from botocore.exceptions import BotoCoreError, ClientError

    for what, look in looks:
        try:
            look()
        except (BotoCoreError, ClientError) as error:
            yield f"{what} of {params['region']} cannot be read ({error}); make it, or correct its name or your rights"


def main() -> None:
    """Check, bring or remove."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    params, check = module.params, module.check_mode
    os.environ["AWS_DEFAULT_REGION"] = params["region"]
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    session = boto3.session.Session(region_name=params["region"])
    bucket = Bucket(session, params["bucket"], params["prefix"])
    changed: list[str] = []
    try:
        if params["state"] == "checked":
            problems = list(lacking(session, params))
            if problems:
                module.fail_json(msg="; ".join(problems), problems=problems)
        elif params["state"] == "present":
            changed = bucket.bring(params["texts"], params["archive"], check)
        else:
            changed = bucket.remove(check)
    except (BotoCoreError, ClientError, OSError) as error:
        module.fail_json(msg=f"bucket {params['bucket']}: {error}; see your rights there, and the credentials in use")
    module.exit_json(changed=bool(changed), objects=changed)


if __name__ == "__main__":
    main()

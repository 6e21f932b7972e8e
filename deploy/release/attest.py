"""Says of an image what is in it and what it was made of: a bill of materials (CycloneDX 1.6), a provenance (an in-toto
Statement v1 with SLSA's Provenance v1), and a signed envelope of that (DSSE). ``make_images`` writes them; only the standard
library and, to sign, ``openssl``.
"""

import base64
import hashlib
import json
import re
import subprocess
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
PAYLOAD = "application/vnd.in-toto+json"
BUILD_TYPE = "urn:countersign:make-images:1"
"""What is built like this is described in docs/install.md, "Images"."""
_LONGEST_NAME = 100
"""Characters of a licence's name; what is longer is its text."""


class NotSigned(Exception):
    """openssl did not sign; the message says why."""


@dataclass(frozen=True)
class Image:
    """A built image. ``manifest`` and ``configuration`` are SHA-256 in hexadecimal: the first is what a registry finds it by,
    as long as its layers are packed as they are here; the second is its id, wherever it is."""

    name: str
    manifest: str
    configuration: str


@dataclass(frozen=True)
class Built:
    """What an image was built of, and how."""

    what: str
    commit: str
    source: str
    arguments: Mapping[str, str]
    base: str
    base_digest: str
    files: Mapping[str, str]
    builder: str
    engine: str
    began: datetime
    ended: datetime
    invocation: str = field(default_factory=lambda: str(uuid.uuid4()))


# --- what is in it


def bill(title: str, version: str, commit: str, created: datetime, inventory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bill of materials of an image, of what ``image/inventory.py`` found in it; of the same, the same bill."""
    system = inventory["system"]
    distribution = f"{system['id']}-{system['version']}"
    components = [
        _component(
            "platform", "CPython", inventory["python"], f"pkg:generic/python@{inventory['python']}", _spdx("PSF-2.0")
        ),
        *(_debian(package, system["id"], distribution) for package in inventory["debian_packages"]),
        *(_python(package) for package in inventory["python_packages"]),
        *(_font(name, digest) for name, digest in inventory["fonts"].items()),
    ]
    ours = _component(
        "container", title, version, f"pkg:generic/{title}@{version}?vcs_revision={commit}", _spdx("Apache-2.0")
    )
    text = json.dumps(components, sort_keys=True)
    serial = uuid.uuid5(uuid.NAMESPACE_OID, f"{title} {version} {commit} {text}")
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"timestamp": _iso(created), "component": ours},
        "components": components,
        "dependencies": [
            {"ref": ours["bom-ref"], "dependsOn": sorted(component["bom-ref"] for component in components)}
        ],
    }


def _component(
    kind: str, name: str, version: str, purl: str, *licences: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    component = {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl, **more}
    return {**component, "licenses": list(licences)} if licences else component


def _debian(package: Mapping[str, str], vendor: str, distribution: str) -> dict[str, Any]:
    name, version = package["name"], package["version"]
    qualifiers = {"arch": package["architecture"], "distro": distribution}
    if (package["source"], package["source_version"]) != (name, version):
        qualifiers["upstream"] = f"{package['source']}@{package['source_version']}"
    purl = f"pkg:deb/{vendor}/{_purl(name)}@{_purl(version)}?" + "&".join(
        f"{k}={_purl(v)}" for k, v in qualifiers.items()
    )
    return _component("library", name, version, purl, supplier={"name": package["maintainer"]})


def _python(package: Mapping[str, Any]) -> dict[str, Any]:
    name = re.sub(r"[-_.]+", "-", package["name"]).lower()
    purl = f"pkg:pypi/{_purl(name)}@{_purl(package['version'])}"
    licences: list[dict[str, Any]] = [_spdx(package["expression"])] if package["expression"] else []
    if not licences:  # Some fill the field with the whole text.
        short = 0 < len(package["licence"]) < _LONGEST_NAME and package["licence"] != "UNKNOWN"
        names = dict.fromkeys([*([package["licence"]] if short else []), *package["classifiers"]])
        licences = [{"license": {"name": name}} for name in names]
    description = {"description": package["summary"]} if package["summary"] else {}
    return _component("library", name, package["version"], purl, *licences, **description)


def _font(name: str, digest: str) -> dict[str, Any]:
    hashes = [{"alg": "SHA-256", "content": digest}]
    return _component(
        "file", name, digest[:12], f"pkg:generic/{_purl(name)}@{digest[:12]}", _spdx("OFL-1.1"), hashes=hashes
    )


def _spdx(expression: str) -> dict[str, str]:
    return {"expression": expression}


def _purl(text: str) -> str:
    return quote(text, safe="")


# --- what it was made of


def provenance(image: Image, built: Built, bill_of_materials: bytes, bill_name: str) -> dict[str, Any]:
    """Return the statement of how an image came about."""
    source = {"name": "source", "digest": {"gitCommit": built.commit}}
    if built.source:
        source["uri"] = f"git+{built.source}@{built.commit}"
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": image.name, "digest": {"sha256": image.manifest}},
            {"name": f"{image.name}#config", "digest": {"sha256": image.configuration}},
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "image": built.what,
                    "commit": built.commit,
                    "buildArguments": dict(built.arguments),
                },
                "internalParameters": {"engine": built.engine},
                "resolvedDependencies": [
                    source,
                    {"name": built.base, "digest": {"sha256": built.base_digest}},
                    *({"name": name, "digest": {"sha256": digest}} for name, digest in built.files.items()),
                ],
            },
            "runDetails": {
                "builder": {"id": built.builder},
                "metadata": {
                    "invocationId": built.invocation,
                    "startedOn": _iso(built.began),
                    "finishedOn": _iso(built.ended),
                },
                "byproducts": [
                    {
                        "name": bill_name,
                        "digest": {"sha256": hashlib.sha256(bill_of_materials).hexdigest()},
                        "mediaType": "application/vnd.cyclonedx+json",
                    }
                ],
            },
        },
    }


def envelope(statement: bytes, key: Path) -> dict[str, Any]:
    """Return the statement in a DSSE envelope, signed with a private key (PEM: ECDSA or RSA, with SHA-256).

    Raises ``NotSigned``.
    """
    public = _openssl(["pkey", "-in", str(key), "-pubout", "-outform", "DER"])
    signature = _openssl(["dgst", "-sha256", "-sign", str(key)], encoded(PAYLOAD, statement))
    return {
        "payloadType": PAYLOAD,
        "payload": base64.b64encode(statement).decode(),
        "signatures": [
            {"keyid": hashlib.sha256(public).hexdigest(), "sig": base64.b64encode(signature).decode()},
        ],
    }


def encoded(kind: str, payload: bytes) -> bytes:
    """Return what is signed: the payload with its type, so that it is nothing else (DSSE's pre-authentication encoding)."""
    return b"DSSEv1 %d %b %d %b" % (len(kind.encode()), kind.encode(), len(payload), payload)


def _openssl(arguments: Sequence[str], standard_input: bytes = b"") -> bytes:
    try:
        done = subprocess.run(["openssl", *arguments], input=standard_input, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise NotSigned("openssl is not installed") from error
    if done.returncode:
        raise NotSigned(done.stderr.decode(errors="replace").strip() or "openssl failed")
    return done.stdout


def hashes(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of files, by name; of a folder those of the files in it."""
    paths = [root / name for name in names]
    files = [
        file for path in paths for file in ([path] if path.is_file() else sorted(path.glob("*"))) if file.is_file()
    ]
    return {file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def written(document: Mapping[str, Any]) -> bytes:
    """Return a document as bytes; the same document gives the same ones."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

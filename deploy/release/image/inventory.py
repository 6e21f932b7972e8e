"""Prints as JSON what an image holds: run inside it by ``deploy/release/make_images.py``. Only the standard library."""

import hashlib
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

STATUS = Path("/var/lib/dpkg/status")
FONTS = Path("/app/services/rendering/fonts")


def main() -> None:
    """Print the packages of Debian and of Python, the fonts of our own, and what they are on."""
    system = platform.freedesktop_os_release()
    inventory = {
        "system": {"id": system["ID"], "version": system.get("VERSION_ID", "")},
        "python": platform.python_version(),
        "debian_packages": debian(),
        "python_packages": python(),
        "fonts": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(FONTS.glob("*.ttf"))},
    }
    print(json.dumps(inventory))


def debian() -> list[dict[str, str]]:
    """Return each installed package of Debian, by name."""
    packages = []
    for paragraph in STATUS.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed"):
            source, _, version = fields.get("Source", fields["Package"]).partition(" ")
            packages.append(
                {
                    "name": fields["Package"],
                    "version": fields["Version"],
                    "architecture": fields["Architecture"],
                    "source": source,
                    "source_version": version.strip("()") or fields["Version"],
                    "maintainer": fields.get("Maintainer", ""),
                }
            )
    return sorted(packages, key=lambda package: (package["name"], package["architecture"]))


def python() -> list[dict[str, Any]]:
    """Return each installed package of Python, by name, with what it says of its licence."""
    packages = []
    for distribution in metadata.distributions():
        fields = distribution.metadata
        classifiers = [line for line in fields.get_all("Classifier") or () if line.startswith("License ::")]
        packages.append(
            {
                "name": fields["Name"],
                "version": distribution.version,
                "summary": _first(fields, "Summary"),
                "expression": _first(fields, "License-Expression"),
                "licence": _first(fields, "License"),
                "classifiers": [line.rpartition(" :: ")[2] for line in classifiers],
            }
        )
    return sorted(packages, key=lambda package: package["name"].lower())


def _first(fields: metadata.PackageMetadata, key: str) -> str:
    return str((fields.get_all(key) or [""])[0])


if __name__ == "__main__":
    main()

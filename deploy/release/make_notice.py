"""Makes NOTICE: what the images hold that others wrote, with its licence. `make notice` calls it.

    .venv/bin/python -m deploy.release.make_notice

Python packages are those of `deploy/locks/all.txt`; their licences and notices are read from what is installed, which has to be
what is locked. Debian packages are those that the Dockerfile names. The only copies of others' work in the repository itself
are the fonts of typed signatures, which say themselves what they are.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from fontTools.ttLib import TTFont

from deploy.services import ROOT

LOCKS = ROOT / "deploy" / "locks"
PAGE = ROOT / "NOTICE"
DOCKERFILE = ROOT / "services" / "Dockerfile"
FONTS = ROOT / "services" / "rendering" / "fonts"
DEBIAN_LICENCES = {
    "fonts-crosextra-caladea": "OFL-1.1",
    "fonts-crosextra-carlito": "OFL-1.1",
    "fonts-liberation": "OFL-1.1",
    "fonts-noto-cjk": "OFL-1.1",
    "fonts-noto-core": "OFL-1.1",
    "fonts-symbola": "free for any use",
    "fonts-unifont": "GPL-2.0-or-later",
    "libharfbuzz-subset0": "MIT; parts Apache-2.0, ISC, OFL-1.1, Unicode",
    "libpango-1.0-0": "LGPL-2.0-or-later; parts LGPL-2.1-or-later",
    "libpangoft2-1.0-0": "LGPL-2.0-or-later; parts LGPL-2.1-or-later",
    "libreoffice-writer": "MPL-2.0; parts under other licences",
}
"""Of the packages that the Dockerfile names, from their copyright files."""
_PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)", re.MULTILINE)
_LINE = "=" * 100

HEAD = """Countersign
Copyright the Countersign authors

Licensed under the Apache License, Version 2.0 (see LICENSE).

Made by `make notice`. The images hold, besides Countersign, what is listed here. The texts of the licences are in the images:
of Python packages in the folders `*.dist-info` beside them, where a package comes with its text; of Debian packages in
`/usr/share/doc/<package>/copyright`. `make notice` also writes bills of materials (SBOM, CycloneDX) into `dist/`: one for all,
and one for each image.

"""
PYTHON_HEAD = """Python packages
{line}
From deploy/locks/all.txt. The licence is what the package's own metadata states; where a field and classifiers state it, both.

"""
DEBIAN_HEAD = """Debian packages
{line}
Each image is built on `python:3.11-slim-bookworm`: Debian 12 and CPython (PSF-2.0). Named besides in the Dockerfile, with what
they depend on; of the fonts the characters that a document needs are embedded in it:

"""
FONTS_HEAD = """Fonts
{line}
In the image of rendering, unchanged, in services/rendering/fonts with their licence (OFL.txt); the pictures of typed signatures
are drawn with them:

"""
NOTICES_HEAD = """Notices
{line}
Packages under the Apache License, Version 2.0, that come with a NOTICE of their own:

"""


@dataclass(frozen=True)
class Package:
    """A Python package as a lock has it; ``hashes`` are the SHA-256 of its distributions in hexadecimal."""

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def installed(self) -> Distribution:
        """Raises SystemExit when another version, or none, is installed."""
        try:
            installed = distribution(self.name)
        except PackageNotFoundError as error:
            raise SystemExit(f"{self.name} is not installed: python3 deploy/local.py install testing") from error
        if installed.version != self.version:
            raise SystemExit(
                f"{self.name} {installed.version} is installed, and {self.version} is locked: install the lock"
            )
        return installed


@dataclass(frozen=True)
class BundledFont:
    """A font file of the repository; ``digest`` is its SHA-256 in hexadecimal, the rest is what the font says of itself."""

    name: str
    version: str
    copyright: str
    licence: str
    digest: str


def bundled_fonts() -> list[BundledFont]:
    """Those of typed signatures, by name. Raises SystemExit for one that is not under the SIL Open Font License."""
    fonts = []
    for path in sorted(FONTS.glob("*.ttf")):
        names = TTFont(path)["name"]
        if "SIL Open Font License Version 1.1" not in names.getDebugName(13).replace(",", ""):
            raise SystemExit(
                f"{path.name} is not under the SIL Open Font License: say in deploy/release/make_notice.py what it is under"
            )
        version = names.getDebugName(5).removeprefix("Version ").partition(";")[0]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        fonts.append(BundledFont(path.stem, version, names.getDebugName(0), "OFL-1.1", digest))
    return fonts


def locked(lock: str) -> list[Package]:
    """The packages of ``deploy/locks/<lock>.txt``, by name."""
    text = (LOCKS / f"{lock}.txt").read_text()
    packages = [
        Package(name, version, tuple(re.findall(r"[0-9a-f]{64}", more)))
        for name, version, more in _PINNED.findall(text)
    ]
    return sorted(packages, key=lambda package: package.name)


def debian_packages(service: str) -> list[str]:
    """Return what the service's image installs, by name."""
    text = "".join(stage for stage in _stages(service) if f" AS base-{service}\n" in stage)
    calls = re.findall(r"apt-get install -y --no-install-recommends((?:[ \\\n]+[a-z0-9][a-z0-9.+-]*)+)", text)
    return sorted(name for call in calls for name in call.replace("\\", " ").split())


def services() -> list[str]:
    """Those that have an image, by name."""
    return sorted(re.findall(r"^FROM \w+ AS base-(\w+)$", DOCKERFILE.read_text(), re.MULTILINE))


def dockerfile_of(service: str) -> str:
    """Return what the service's image is built of: the stages of the Dockerfile that all have, and its own."""
    return "".join(_stages(service)).replace("${SERVICE}", service)


def _stages(service: str) -> list[str]:
    stages = re.split(r"^(?=FROM )", DOCKERFILE.read_text(), flags=re.MULTILINE)[1:]
    base_matches = [re.match(r"FROM \w+ AS base-(\w+)\n", stage) for stage in stages]
    return [stage for stage, match in zip(stages, base_matches, strict=True) if match is None or match[1] == service]


def licences(installed: Distribution) -> list[str]:
    """The package's SPDX expression; of older packages the field and the classifiers, which may differ."""
    metadata = installed.metadata
    if expression := metadata["License-Expression"]:
        return [expression]
    field = (metadata["License"] or "").strip()
    classifiers = [
        classifier.split(" :: ")[-1]
        for classifier in metadata.get_all("Classifier") or ()
        if classifier.startswith("License ::")
    ]
    return [*([field] if field not in ("", "UNKNOWN") else []), *classifiers]


def notices(installed: Distribution) -> list[str]:
    """The texts of the package's own NOTICE files."""
    files = [
        file
        for file in installed.files or ()
        if file.name.upper() in ("NOTICE", "NOTICE.TXT") and ".dist-info" in str(file)
    ]
    return [_plain(file.read_text(encoding="utf-8")) for file in sorted(files, key=str)]


def text() -> str:
    """All of NOTICE."""
    packages = [(package, package.installed) for package in locked("all")]
    debian_names = sorted({name for service in services() for name in debian_packages(service)})
    return "".join(
        [
            HEAD,
            PYTHON_HEAD.format(line=_LINE),
            _table(
                [
                    (f"{package.name} {package.version}", "; ".join(licences(installed)))
                    for package, installed in packages
                ]
            ),
            DEBIAN_HEAD.format(line=_LINE),
            _table([(name, DEBIAN_LICENCES[name]) for name in debian_names]),
            FONTS_HEAD.format(line=_LINE),
            _table([(f"{font.name} {font.version}", font.licence) for font in bundled_fonts()]),
            "".join(f"{font.name}: {font.copyright}\n" for font in bundled_fonts()) + "\n",
            NOTICES_HEAD.format(line=_LINE),
            "\n".join(
                f"--- {package.name}\n\n{notice}" for package, installed in packages for notice in notices(installed)
            ),
        ]
    )


def _table(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows) + 2
    return "".join(f"{name:<{width}}{licence}\n" for name, licence in rows) + "\n"


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")

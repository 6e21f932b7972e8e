"""Makes the bills of materials (SBOM, CycloneDX 1.6) from the locks: one for all, and one for each image.

    .venv/bin/python -m deploy.release.make_sbom

`make notice` calls it. They go into `dist/` and are not kept in the repository, where the locks say the same in another form.
The same locks and the same `SOURCE_DATE_EPOCH` (seconds; now, when it is not set) give the same bytes. They name what we ask
for; what a built image holds, `make_images` writes beside it.
"""

import os
import tomllib
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.release.make_notice import (
    DEBIAN_LICENCES,
    LOCKS,
    BundledFont,
    Package,
    bundled_fonts,
    debian_packages,
    licences,
    locked,
    services,
)
from deploy.services import ROOT

FOLDER = ROOT / "dist"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_LOCKED_FOR = {"python_version": "3.11", "python_full_version": "3.11.0"}  # as deploy/locks/make says


def bill(lock: str) -> str:
    """The SBOM of a service's image, or of ``all``, as JSON."""
    packages = locked(lock)
    created_at = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.now(UTC).timestamp()), UTC)
    serial = uuid.uuid5(
        uuid.NAMESPACE_OID, f"countersign {lock} {created_at.timestamp():.0f} " + (LOCKS / f"{lock}.txt").read_text()
    )
    ours = _ours(lock)
    bom = Bom(serial_number=serial, metadata=BomMetaData(component=ours, timestamp=created_at))
    components = {package.name: _python(package) for package in packages}
    system = [
        _debian(name) for service in ([lock] if lock != "all" else services()) for name in debian_packages(service)
    ]
    system += [_font(font) for font in bundled_fonts() if lock in ("rendering", "all")]
    bom.components.update([*components.values(), *system])
    for name, needed in dependencies(lock, packages).items():
        bom.register_dependency(components[name] if name else ours, [components[other] for other in sorted(needed)])
    bom.register_dependency(ours, system)
    document: str = JsonV1Dot6(bom).output_as_string(indent=2)
    return document + "\n"


def dependencies(lock: str, packages: Iterable[Package]) -> dict[str, set[str]]:
    """Return which package needs which, by name; the empty name is Countersign. As the installed packages state it."""
    installed = {package.name: package.installed for package in packages}
    edges: dict[str, set[str]] = defaultdict(set, {name: set() for name in installed})
    waiting = [("", requirement) for requirement in _requirements_of(lock)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        whose, requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        edges[whose].add(name)
        if (name, extras) not in seen:
            seen.add((name, extras))
            stated = [Requirement(text) for text in installed[name].requires or ()]
            waiting += [(name, needed) for needed in stated if _applies(needed, extras)]
    return dict(edges)


def _requirements_of(extra: str) -> Iterator[Requirement]:
    """Yield what pyproject.toml asks for, with this extra; extras that name others are followed."""
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            for other in sorted(requirement.extras):
                yield from _requirements_of(other)
        elif _applies(requirement, ()):
            yield requirement


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**_LOCKED_FOR, "extra": extra}) for extra in ("", *extras))


def _ours(lock: str) -> Component:
    name = PROJECT["name"] if lock == "all" else f"{PROJECT['name']}-{lock}"
    return Component(
        type=ComponentType.APPLICATION,
        name=name,
        version=PROJECT["version"],
        bom_ref=name,
        licenses=[LicenseFactory().make_from_string(PROJECT["license"])],
    )


def _python(package: Package) -> Component:
    """The hashes are those of its distributions, any of which the lock lets in; a registry's host is nobody's business."""
    purl = PackageURL("pypi", name=package.name, version=package.version)
    installed = package.installed
    return Component(
        name=package.name,
        version=package.version,
        purl=purl,
        bom_ref=str(purl),
        description=installed.metadata["Summary"],
        licenses=[LicenseFactory().make_from_string(licence) for licence in licences(installed)],
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(str(purl)),
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in package.hashes],
            )
        ],
    )


def _debian(name: str) -> Component:
    """Without a version: the image takes the one that Debian has when it is built."""
    purl = PackageURL("deb", "debian", name, qualifiers={"distro": "debian-12"})
    stated = [LicenseFactory().make_from_string(DEBIAN_LICENCES[name])]
    return Component(name=name, purl=purl, bom_ref=str(purl), licenses=stated)


def _font(font: BundledFont) -> Component:
    purl = PackageURL("generic", name=font.name, version=font.version)
    return Component(
        type=ComponentType.FILE,
        name=font.name,
        version=font.version,
        purl=purl,
        bom_ref=str(purl),
        copyright=font.copyright,
        licenses=[LicenseFactory().make_from_string(font.licence)],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=font.digest)],
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for image in ("all", *services()):
        file = FOLDER / ("countersign.cdx.json" if image == "all" else f"countersign-{image}.cdx.json")
        file.write_text(bill(image), encoding="utf-8")
        print(file.relative_to(ROOT))

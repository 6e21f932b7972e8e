"""NOTICE says what is shipped, with versions and licences of today."""

import pytest

from deploy.release import make_notice
from deploy.release.make_notice import DEBIAN_LICENCES, LOCKS, debian_packages, locked, services
from deploy.services import SERVICES
from services.rendering.jobs.text.fonts import HANDS, OTHER_HANDS


def test_the_notice_is_of_today() -> None:
    """Made of the locks, the Dockerfiles and the metadata of what is installed: a changed one of these changes it."""
    assert make_notice.PAGE.read_text(encoding="utf-8") == make_notice.text(), "run make notice"


def test_it_is_about_all_that_is_shipped() -> None:
    """Each image's packages are among those of ``all``, and none of a lock was overlooked."""
    assert services() == sorted(SERVICES)
    everything = {(package.name, package.version) for package in locked("all")}
    for service in services():
        packages = locked(service)
        assert len(packages) == (LOCKS / f"{service}.txt").read_text().count("==")
        assert {(package.name, package.version) for package in packages} <= everything
        assert all(package.hashes for package in packages)
    assert {name for service in services() for name in debian_packages(service)} == set(DEBIAN_LICENCES)
    assert {"fonts-unifont", "libreoffice-writer"} <= set(debian_packages("rendering"))


def test_every_font_of_the_repository_is_named_with_its_licence() -> None:
    stated = {font.name: font.licence for font in make_notice.bundled_fonts()}
    licence = (make_notice.FONTS / "OFL.txt").read_text()
    for path in make_notice.FONTS.iterdir():
        assert path.name == "OFL.txt" or (stated[path.stem] == "OFL-1.1" and path.name in licence)
    assert {*HANDS, *OTHER_HANDS} - set(stated) == {"NotoNastaliqUrdu-Regular"}


def test_every_package_states_a_licence() -> None:
    for package in locked("all"):
        assert make_notice.licences(package.installed), package.name


def test_a_package_that_is_not_the_locked_one_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its licence may be another."""
    first = locked("all")[0]
    other = make_notice.Package(first.name, "0.0.0", first.hashes)
    monkeypatch.setattr(make_notice, "locked", lambda lock: [other])
    with pytest.raises(SystemExit, match="install the lock"):
        make_notice.text()

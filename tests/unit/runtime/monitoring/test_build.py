"""Which version runs: from pyproject.toml where it lies beside the code, else from what was installed."""

import tomllib
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import pytest
from prometheus_client import REGISTRY

from contracts.runtime.monitoring import build


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    build.version.cache_clear()


def test_the_version_stands_in_one_place() -> None:
    assert build.version() == tomllib.loads(build.PROJECT.read_text())["project"]["version"]


def test_a_package_that_was_installed_knows_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "PROJECT", tmp_path / "pyproject.toml")
    monkeypatch.setattr(metadata, "version", {"countersign": "7.8.9"}.__getitem__)
    assert build.version() == "7.8.9"


@pytest.mark.parametrize("text", [None, "", "[project]\nname = 'countersign'\n", "version = "])
def test_nobody_knows_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None) -> None:
    def missing(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(build, "PROJECT", tmp_path / "pyproject.toml")
    monkeypatch.setattr(metadata, "version", missing)
    if text is not None:
        build.PROJECT.write_text(text)
    assert build.version() == "unknown"


@pytest.mark.parametrize(("given", "told"), [(None, "unknown"), (" ", "unknown"), (" 4711abc\n", "4711abc")])
def test_the_revision_is_what_the_build_of_an_image_says(
    monkeypatch: pytest.MonkeyPatch, given: str | None, told: str
) -> None:
    monkeypatch.delenv("COUNTERSIGN_REVISION", raising=False)
    if given is not None:
        monkeypatch.setenv("COUNTERSIGN_REVISION", given)
    assert build.revision() == told
    build.tell(["templates", "webhooks"])
    for service in ("templates", "webhooks"):
        labels = {"version": build.version(), "revision": told, "service": service}
        assert REGISTRY.get_sample_value("countersign_build_info", labels) == 1

"""The bills of materials hold what the locks hold, and the standard's own schema finds nothing wrong with them."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from deploy.release.make_notice import bundled_fonts, debian_packages, locked, services
from deploy.release.make_sbom import bill
from tests.support.judges.operations import bills
from tests.support.judges.operations.bills import faults


@pytest.fixture(scope="module", autouse=True)
def a_certain_time() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1795000000")
        yield


@pytest.fixture(params=["all", *services()])
def lock(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@cache
def made_of(lock: str) -> str:
    """Its bill, at the time that the fixture sets."""
    return bill(lock)


def packages(made: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """By name; ``kind`` is that of the package URL."""
    return {one["name"]: one for one in bills.packages(made, kind)}


@cache
def judged() -> dict[str, str | None]:
    """What the schema of the standard finds wrong with each bill, and with two that are: one process for all, as it takes most
    of its time to begin."""
    made = {lock: made_of(lock) for lock in ["all", *services()]}
    kind, address = json.loads(made["webhooks"]), json.loads(made["webhooks"])
    kind["components"][0]["type"] = "thing"
    address["components"][0]["externalReferences"][0]["url"] = "no address"
    made |= {"wrong kind": json.dumps(kind), "wrong address": json.dumps(address)}
    return dict(zip(made, faults(*made.values()), strict=True))


def test_the_schema_of_the_standard_accepts_them(lock: str) -> None:
    assert judged()[lock] is None


def test_the_schema_would_not_accept_anything() -> None:
    assert "'thing' is not one of" in str(judged()["wrong kind"])
    assert "'no address' is not valid under any" in str(judged()["wrong address"])


def test_it_holds_what_the_lock_holds(lock: str) -> None:
    made = json.loads(made_of(lock))
    components = packages(made, "pypi")
    assert {(one["name"], one["version"]) for one in components.values()} == {
        (package.name, package.version) for package in locked(lock)
    }
    for package in locked(lock):
        (reference,) = components[package.name]["externalReferences"]
        assert {one["content"] for one in reference["hashes"]} == set(package.hashes)
        assert reference["url"] == f"pkg:pypi/{package.name}@{package.version}", "and no registry's host"
        assert components[package.name]["licenses"]
    wanted = debian_packages(lock) if lock != "all" else debian_packages("rendering")
    assert sorted(packages(made, "deb")) == wanted
    with_fonts = lock in ("rendering", "all")
    assert set(packages(made, "generic")) == {font.name for font in bundled_fonts() if with_fonts}


def test_every_package_is_needed_by_another_or_by_us(lock: str) -> None:
    """Two ways to the same list: the lock, and what the installed packages say that they need."""
    made = json.loads(made_of(lock))
    needs = {one["ref"]: one.get("dependsOn", []) for one in made["dependencies"]}
    reached, waiting = set(), [made["metadata"]["component"]["bom-ref"]]
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += needs[name]
    assert reached == {made["metadata"]["component"]["bom-ref"], *(one["bom-ref"] for one in made["components"])}


def test_the_same_locks_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bill("gateway") == made_of("gateway")
    first = json.loads(made_of("gateway"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795000001")
    second = json.loads(bill("gateway"))
    assert first["serialNumber"] != second["serialNumber"], "another bill"
    assert first["components"] == second["components"]

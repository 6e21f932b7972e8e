"""Every image holds what its service imports, and nothing that it asks for without using it (pyproject.toml, deploy/locks)."""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from deploy import local

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SERVICES = ["gateway", "templates", "submissions", "rendering", "notifications", "webhooks"]

USED_BY_OTHERS = {"gateway": {"python-multipart"}}  # Starlette reads forms with it


def plain(requirement: str) -> str:
    return re.split(r"[\[<>=; ]", requirement)[0].lower().replace("_", "-")


def imported(service: str, *, by_contracts: bool = False) -> set[str]:
    """The distributions that the service's own modules import, anywhere in them; ``by_contracts``: or what they use of
    ``contracts``. That may be more than there is: some of it is imported only where the service that asks has it."""
    waiting, seen = [*(ROOT / "services" / service).rglob("*.py")], set[Path]()
    names: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in modules_in(path):
            names.add(name.partition(".")[0])
            if by_contracts and name.startswith("contracts."):
                place = ROOT / name.replace(".", "/")
                waiting += [found for found in (place.with_suffix(".py"), place / "__init__.py") if found.exists()]
    known = packages_distributions()
    foreign = names - set(sys.stdlib_module_names) - {"contracts", "services", "deploy"}
    return {name.lower().replace("_", "-") for package in foreign for name in known[package]}


def modules_in(path: Path) -> Iterator[str]:
    """What a file imports; of ``from a import b`` both ``a`` and ``a.b``, which may be a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("service", SERVICES)
def test_what_a_service_imports_is_in_its_image(service: str) -> None:
    locked = {
        plain(line)
        for line in (ROOT / "deploy" / "locks" / f"{service}.txt").read_text().splitlines()
        if line and not line.startswith((" ", "#"))
    }
    assert imported(service) <= locked


@pytest.mark.parametrize("service", SERVICES)
def test_what_a_service_asks_for_it_uses(service: str) -> None:
    asked = {plain(one) for one in PROJECT["optional-dependencies"][service]} - {"countersign"}
    assert asked - USED_BY_OTHERS.get(service, set()) <= imported(service, by_contracts=True)


@pytest.mark.parametrize("folder", local.NODE_LOCKS.values(), ids=lambda folder: folder.name)
def test_the_npm_locks_pin_everything_and_name_no_registry(folder: Path) -> None:
    """Whoever installs has a registry of their own; the hash says that it gives the same package."""
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert packages.pop("")["dependencies"] == wanted
    assert all(re.fullmatch(r"[0-9.]+", version) for version in wanted.values())
    assert all(one["integrity"].startswith("sha512-") and "resolved" not in one for one in packages.values())
    assert {f"node_modules/{name}" for name in wanted} <= set(packages)

"""The picture of what imports what is that of the code, and shows no circle."""

import xml.etree.ElementTree as ElementTree

import pytest

from docs.programs import map as picture

SVG = "{http://www.w3.org/2000/svg}"


def imports(**found: str) -> picture.Imports:
    return {module: frozenset(others.split()) for module, others in found.items()}


def test_the_picture_is_current() -> None:
    """Drawn anew by ``python -m docs.programs.map``; a circle could not be drawn."""
    assert picture.FILE.read_text() == picture.drawn()


def test_it_shows_every_module_and_arrows_that_lead_down() -> None:
    root = ElementTree.fromstring(picture.FILE.read_text())
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {*picture.PACKAGES, "rules", "protocol", "jobs", "sealing", "bus"} <= {*texts}
    lines = [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("marker-end")]
    assert len(lines) > 100
    for line in lines:
        begin, end = line.removeprefix("M").split(" L")
        assert float(begin.split()[1]) < float(end.split()[1])


def test_what_imports_stands_above_what_it_imports() -> None:
    found = imports(service="commands models", commands="models domain", models="", domain="", alone="")
    assert picture.rows(found) == [["service"], ["commands"], ["alone", "domain", "models"]]
    implied = ("service", "models")
    assert list(picture.arrows(found)) == [("commands", "domain"), ("commands", "models"), ("service", "commands")]
    assert implied not in picture.arrows(found)


def test_a_circle_is_named() -> None:
    with pytest.raises(picture.Circle, match="events -> rpc -> types -> events"):
        picture.rows(imports(above="events", events="rpc", rpc="types", types="events"))


def test_of_a_package_each_import_counts_wherever_it_stands() -> None:
    """Those of a room's modules, and those within functions."""
    found = picture.imports_within("services.rendering")
    assert {"children", "jobs", "protocol", "sealing"} <= set(found)
    assert "protocol" in found["children"]
    assert "rules" in found["jobs"], "jobs/trail/audit_trail.py"
    assert "__main__" not in found
    assert all(module not in others for module, others in found.items())

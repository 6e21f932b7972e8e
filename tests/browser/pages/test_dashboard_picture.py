"""The picture of the dashboard shows what Prometheus answered, where Grafana would and as Grafana words it."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from deploy.observability import make_dashboard
from docs.programs.dashboard import drawing
from tests.browser.conftest import Chromium
from tests.support.present import present

START, STEP, STEPS = 1_800_000_000, 15, 20
DASHBOARD = make_dashboard.dashboard()
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"] if panel["type"] != "row"}


def answers(**given: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Nothing of all panels but those whose titles are given."""
    panels: dict[str, list[list[dict[str, Any]]]] = {
        str(panel["id"]): [[] for _ in panel["targets"]] for panel in PANELS.values()
    }
    panels |= {str(PANELS[title]["id"]): found for title, found in given.items()}
    return {"start": START, "end": START + STEPS * STEP, "panels": panels}


def line(name: str, *values: str) -> dict[str, Any]:
    return {"name": name, "metric": {}, "values": [[START + STEP * at, value] for at, value in enumerate(values)]}


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    context = chromium.new_context(viewport=drawing.SCREEN, locale="en-GB", timezone_id="UTC")
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    assert errors == []
    chromium.close(context)


def panel(page: Page, title: str) -> Any:
    return page.locator(f'.panel[data-title="{title}"]')


def test_numbers_are_worded_and_coloured_by_their_limits(page: Page) -> None:
    given = {
        "Longest overdue": [[line("seconds", "12", "450.5")]],
        "Longest sealing": [[line("seconds", "0.0325")]],
        "Answers with 5xx": [[line("share", "0.0123", "NaN")]],
        "Work given up": [[line("parked", "0")]],
    }
    drawing.show(page, DASHBOARD, answers(**given))
    for title, words, colour in (
        ("Longest overdue", "7.51 mins", "rgb(212, 74, 58)"),
        ("Longest sealing", "32.5 ms", "rgb(41, 156, 70)"),
        ("Answers with 5xx", "1.23%", "rgb(41, 156, 70)"),
        ("Work given up", "0", "rgb(41, 156, 70)"),
        ("Processes", "No data", "rgb(41, 156, 70)"),
    ):
        expect(panel(page, title).locator(".value")).to_have_text(words)
        expect(panel(page, title)).to_have_css("background-color", colour)


def test_lines_have_names_and_axes_and_what_is_empty_says_so(page: Page) -> None:
    waiting = [line("webhooks", "3", "4"), line("gateway", "NaN", "NaN")]
    given = {
        "Outbox": [waiting, [line("age of the oldest", "90", "150")]],
        "Overdue": [[line("mails", "1"), line("seal", "90"), line("deliver", "0.25")]],
    }
    drawing.show(page, DASHBOARD, answers(**given))
    outbox = panel(page, "Outbox")
    expect(outbox.locator(".legend span")).to_have_text(["webhooks", "age of the oldest"])
    expect(outbox.locator(".u-axis")).to_have_count(3)
    expect(panel(page, "Event loops").locator(".u-axis")).to_have_count(0)
    overdue = panel(page, "Overdue").locator(".legend > *")
    expect(overdue).to_have_text(["Name", "Last * ⌄", "seal", "1.50 mins", "mails", "1 s", "deliver", "250 ms"])
    expect(panel(page, "Bugs of ours").locator(".empty")).to_have_text("None was seen")
    expect(panel(page, "Event loops").locator(".empty")).to_have_text("No data")


def test_a_table_has_the_columns_that_its_transformation_leaves(page: Page) -> None:
    row = {"metric": {"service": "gateway", "version": "1.2", "revision": "abc"}, "value": [START, "2"], "name": ""}
    drawing.show(page, DASHBOARD, answers(**{"What runs": [[row]]}))
    cells = panel(page, "What runs").locator("th, td")
    expect(cells).to_have_text(["service", "version", "revision", "processes", "gateway", "1.2", "abc", "2"])


def test_panels_lie_where_grafana_lays_them(page: Page) -> None:
    drawing.show(page, DASHBOARD, answers())
    boxes = {title: present(panel(page, title).bounding_box()) for title in PANELS}
    assert len(boxes) == len(PANELS) == page.locator(".panel").count()
    column = (present(page.locator("main").bounding_box())["width"] + 8) / make_dashboard.COLUMNS
    for title, box in boxes.items():
        place = PANELS[title]["gridPos"]
        assert box["width"] == pytest.approx(place["w"] * column - 8, abs=0.5)
        assert (box["x"] - boxes["Alerts"]["x"]) == pytest.approx(place["x"] * column, abs=0.5)
        assert (box["y"] - boxes["Alerts"]["y"]) == (place["y"] - 1) * 38

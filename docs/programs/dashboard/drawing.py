"""The dashboard as a picture: the panels where Grafana lays them out, drawn in Chromium by uPlot, which draws
Grafana's own lines."""

import io
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright

from deploy.observability import make_dashboard

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "pictures"
UPLOT = Path(sys.prefix) / "uplot" / "node_modules" / "uplot" / "dist"
"""``deploy/local.py`` installs it from ``docs/programs/dashboard/uplot``."""
SCREEN: ViewportSize = {"width": 1280, "height": 800}
QUALITY = 80


def draw(answers: dict[str, Any]) -> list[Path]:
    """Draw these answers (``answers_of``) into the folder of pictures, a picture for each row. Returns the files."""
    from tests.browser.conftest import CHROMIUM, FLAGS
    from tests.support.present import present

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport=SCREEN, locale="en-GB", timezone_id="UTC")
        show(page, make_dashboard.dashboard(), answers)
        picture = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
        rows = {row.get_attribute("data-title"): present(row.bounding_box())["y"] for row in page.locator(".row").all()}
        browser.close()
    files = []
    # The first one has the head of the page as well.
    edges = [0, *(round(top) for top in list(rows.values())[1:]), picture.height]
    for title, (top, bottom) in zip(rows, pairwise(edges), strict=True):
        files.append(FOLDER / file_of(str(title)))
        picture.crop((0, top, picture.width, bottom)).save(files[-1], "WEBP", quality=QUALITY, method=6)
    return files


def file_of(row: str) -> str:
    """Return the name of the picture of a row."""
    return f"dashboard-{row.lower().replace(' ', '-')}.webp"


def show(page: Any, dashboard: dict[str, Any], answers: dict[str, Any]) -> None:
    """Draw a dashboard in an empty page of a browser."""
    page.set_content((HERE / "page.html").read_text(encoding="utf-8"))
    page.add_style_tag(path=UPLOT / "uPlot.min.css")
    page.add_script_tag(path=UPLOT / "uPlot.iife.min.js")
    page.add_script_tag(path=HERE / "page.js")
    page.evaluate("([dashboard, answers]) => drawDashboard(dashboard, answers)", [dashboard, answers])

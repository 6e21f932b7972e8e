"""Make the pictures of docs/signing.md, in docs/pictures: ``python -m docs.make_signing``.

It starts a suite by itself; with ``WARM_SUITE=<folder>`` it takes one that runs."""

import io
from pathlib import Path
from typing import Any

from PIL import Image

FOLDER = Path(__file__).parent / "pictures"
PHONE, LAPTOP = (390, 844), (1280, 800)
QUALITY = 72
FULL = 880
"""Pixels across a picture of a laptop: as wide as the page that shows it."""

PICTURES = {
    "start": ("phone", "en", "light"),
    "field Rent": ("phone", "en", "light"),
    "signature drawn": ("phone", "en", "light"),
    "completed": ("phone", "en", "light"),
    "reading": ("phone", "en", "dark"),
    "find": ("laptop", "en", "light"),
    "field Full name": ("laptop", "ar", "light"),
    "review": ("laptop", "de", "dark"),
}
"""States of ``tests/browser/tour.py``: on which screen, in which language and light."""


def main() -> None:
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import CHROMIUM, DESKTOP, FLAGS
    from tests.browser.tour import Tour, suite_for_pictures

    FOLDER.mkdir(exist_ok=True)
    with suite_for_pictures() as suite:
        tour = Tour(suite)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
            for tag in sorted({tag for _, tag, _ in PICTURES.values()}):
                context = browser.new_context(
                    viewport=DESKTOP, locale=tag, reduced_motion="reduce", device_scale_factor=1.5
                )
                context.set_default_timeout(90_000)
                page = context.new_page()
                for state in tour.walk(page, tag):
                    screen, language, light = PICTURES.get(state, ("", "", ""))
                    if language == tag:
                        _draw(page, screen, light, FOLDER / f"{screen}-{state.replace(' ', '-')}-{tag}.webp")
                context.close()
            browser.close()


def _draw(page: Any, screen: str, light: str, path: Path) -> None:
    width, height = PHONE if screen == "phone" else LAPTOP
    before = page.viewport_size
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=light)
    page.wait_for_timeout(1_000)  # until the pictures of the document are drawn
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        wanted = FULL if screen == "laptop" else picture.width * 2 // 3
        small = picture.convert("RGB").resize(
            (wanted, picture.height * wanted // picture.width), Image.Resampling.LANCZOS
        )
        small.save(path, "WEBP", quality=QUALITY, method=6)
    page.set_viewport_size(before)
    page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    main()

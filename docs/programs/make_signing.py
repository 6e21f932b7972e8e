"""Make the pictures of docs/signing.md, in docs/pictures: ``python -m docs.programs.make_signing``.

It starts a suite by itself; with ``WARM_SUITE=<folder>`` it takes one that runs."""

import base64
import io
import uuid
from pathlib import Path
from typing import Any

from PIL import Image

FOLDER = Path(__file__).parents[1] / "pictures"
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

LEASE = """<h1>Lease</h1>
<p>Between Countersign Homes, the landlord, and Ann Ray, the tenant, of the flat at 12 Harbour Street.</p>
<h2>1. Term</h2><p>The lease begins on the first of March and ends after two years. It goes on from month to month when
nobody has ended it by then; each side may end it with notice of three months.</p>
<h2>2. Rent</h2><p>The rent is 1,250 EUR a month, due on the third working day. Heating and water are billed once a year by
what was used.</p>
<h2>3. Deposit</h2><p>Two months of rent, kept apart from the landlord's own money, and paid back within thirty days of the
end.</p>
<h2>4. Repairs</h2><p>The landlord keeps the building, its lines and the heating in order. The tenant tells of damage as soon
as they see it.</p>
<p><signature-field name="Signature" role="Tenant" style="width: 160px; height: 40px"></signature-field></p>"""
"""What the invitation that is drawn asks for: nothing that keeps the first page out of it."""


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
                if tag == "en":
                    page.goto("about:blank")  # where no policy forbids the styles of mails
                    page.set_content(_invitation(suite))
                    _draw(page, "phone", "light", FOLDER / "phone-invitation-en.webp")
                context.close()
            browser.close()


def _invitation(suite: Any) -> str:
    """The HTML of an invitation, with the pictures that came with it."""
    from tests.support.material.outcomes import mails_to
    from tests.support.services.suite import wait_until

    def invited() -> Any:
        """An invitation that shows the first page: a busy machine may not have it in time at first."""
        person = {"role": "Tenant", "email": f"{uuid.uuid4().hex[:6]}@example.com", "name": "Ann Ray", "lang": "en"}
        suite.api("POST", "/submissions/html", {"name": "Lease", "html": LEASE, "submitters": [person]})
        mail = wait_until(lambda: mails_to(suite, person["email"]), what="the mail")[0]
        return mail if "<first_page>" in [part["Content-ID"] for part in mail.walk()] else None

    mail = wait_until(invited, what="the first page is drawn")
    body = mail.get_body(("html",))
    assert body is not None
    html = str(body.get_content())
    for part in mail.walk():
        if name := str(part["Content-ID"] or "").strip("<>"):
            encoded = base64.b64encode(part.get_content()).decode()
            html = html.replace(f"cid:{name}", f"data:{part.get_content_type()};base64,{encoded}")
    return html


def _draw(page: Any, screen: str, light: str, path: Path) -> None:
    width, height = PHONE if screen == "phone" else LAPTOP
    before = page.viewport_size
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=light)
    page.wait_for_timeout(1_000)  # until the pictures of the document are drawn
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        width_drawn = FULL if screen == "laptop" else picture.width * 2 // 3
        small = picture.convert("RGB").resize(
            (width_drawn, picture.height * width_drawn // picture.width), Image.Resampling.LANCZOS
        )
        small.save(path, "WEBP", quality=QUALITY, method=6)
    page.set_viewport_size(before)
    page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    main()

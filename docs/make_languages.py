"""Write the table of languages in docs/languages.md: ``python -m docs.make_languages``.

``pictures FOLDER TAG…`` draws the pages of each language on a phone and on a laptop instead, to be looked at for words that are
cut."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from contracts.languages.choosing import SOURCE, languages
from contracts.languages.formatting import name_of
from contracts.languages.saying import language_for

PAGE = Path(__file__).parent / "languages.md"
BEGINNING, END = "<!-- languages -->\n", "<!-- /languages -->\n"
SIZES = ((320, 640), (1280, 800))


def table() -> str:
    """Return the rows: each language, where its lines begin, and who has looked at it. A test says whether it is complete."""
    lines = ["| Tag | Language | Runs | State |", "|---|---|---|---|"]
    for tag in languages():
        state = "the source" if tag == SOURCE else "to be reviewed by a native speaker"
        runs = "from right to left" if language_for(tag).direction == "rtl" else "from left to right"
        lines.append(f"| `{tag}` | {name_of(tag)} | {runs} | {state} |")
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    before, _, rest = page.partition(BEGINNING)
    return before + BEGINNING + table() + END + rest.partition(END)[2]


def pictures(folder: Path, tags: list[str]) -> None:
    """Draw the pages of each language: a file for each language, size and page."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import CHROMIUM, FLAGS
    from tests.browser.forms import field, invite, template
    from tests.support.services.warm import started_or_warm

    folder.mkdir(parents=True, exist_ok=True)
    suite = started_or_warm(Path(tempfile.mkdtemp(prefix="languages-")))
    fields = [field("Name"), field("Signature", "signature", line=2, height=0.08)]
    made = template(suite, *fields)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
            for tag in tags:
                for width, height in SIZES:
                    (row,) = invite(suite, made, submitter_0={"lang": tag})
                    context = browser.new_context(viewport={"width": width, "height": height}, locale=tag)
                    context.set_default_timeout(90_000)
                    _walk(context.new_page(), suite.base_url, f"/s/{row['slug']}", folder / f"{tag}-{width}")
                    context.close()
            browser.close()
    finally:
        if "WARM_SUITE" not in os.environ:
            suite.stop()


def _walk(page: Any, base_url: str, path: str, name: Path) -> None:
    def seen(what: str) -> None:
        page.wait_for_timeout(500)
        page.screenshot(path=f"{name}-{what}.png")

    page.goto(base_url + path)
    seen("start")
    page.locator(".panel .button--main").first.click()
    page.wait_for_timeout(300)
    page.locator(".panel .button--main").first.click()  # nothing was filled in: what is wrong
    seen("problem")
    page.locator(".panel input").first.fill("Ana")
    page.locator(".panel .button--main").first.click()
    seen("signature")
    for other, what in (("/verify", "verify"), ("/s/nothing", "gone"), ("/", "welcome")):
        page.goto(base_url + other)
        seen(what)


def main() -> None:
    if sys.argv[1:2] == ["pictures"]:
        pictures(Path(sys.argv[2]), sys.argv[3:] or list(languages()))
    else:
        PAGE.write_text(with_table(PAGE.read_text()))


if __name__ == "__main__":
    main()

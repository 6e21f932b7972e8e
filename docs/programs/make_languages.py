"""Write the table of languages in docs/languages.md: ``python -m docs.programs.make_languages``.

``pictures FOLDER TAG…`` draws the pages of each language on a phone and on a laptop instead, to be looked at for words that are
cut."""

import sys
from pathlib import Path

from contracts.languages.choosing import SOURCE, languages
from contracts.languages.formatting import name_of
from contracts.languages.saying import language_for

PAGE = Path(__file__).parents[1] / "languages.md"
BEGINNING, END = "<!-- languages -->\n", "<!-- /languages -->\n"
SIZES = ((1280, 800), (320, 640))


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
    """Draw every state of the pages in each language: a file for each language, size and state."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import CHROMIUM, DESKTOP, FLAGS
    from tests.browser.tour import Tour, suite_for_pictures

    folder.mkdir(parents=True, exist_ok=True)
    with suite_for_pictures() as suite:
        tour = Tour(suite)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
            for tag in tags:
                context = browser.new_context(viewport=DESKTOP, locale=tag, reduced_motion="reduce")
                context.set_default_timeout(90_000)
                page = context.new_page()
                for number, state in enumerate(tour.walk(page, tag), 1):
                    for width, height in SIZES:
                        page.set_viewport_size({"width": width, "height": height})
                        page.wait_for_timeout(300)  # until the pictures of the document are drawn
                        page.screenshot(path=folder / f"{tag}-{width}-{number:02}-{state.replace(' ', '-')}.png")
                    page.set_viewport_size(DESKTOP)
                context.close()
            browser.close()


def main() -> None:
    if sys.argv[1:2] == ["pictures"]:
        pictures(Path(sys.argv[2]), sys.argv[3:] or list(languages()))
    else:
        PAGE.write_text(with_table(PAGE.read_text()))


if __name__ == "__main__":
    main()

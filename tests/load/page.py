"""What opening the signing page costs on a bad phone.

    python -m tests.load.page

Chromium with slow 3G (an answer after 400 ms, 400 kbit/s) and a processor six times slower, at the width of a phone, nothing kept
from before. Prints milliseconds until Start can be pressed, until the form answers, and until the first page is seen, the bytes
and requests until then, and how far things moved meanwhile, each beside its budget, for one page of text and for forty. Then, with
a network that is not slow, what the page weighs once each page of the documents has been looked at.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Any

import pikepdf
from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS, PHONE
from tests.support.files.pdf_files import A4, add_page, line, saved
from tests.support.judges.pages.slow_phone import SLOW_3G, SLOWER, Cost, cost
from tests.support.services.suite import RunningSuite, start_suite

ROUNDS = 5
CLAUSE = "Each party keeps secret what it learns of the other, for as long as it is not known to all."


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        Path(folder).chmod(0o755)
        suite = start_suite(Path(folder), one_worker=True)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            for pages in (1, 40):
                url = f"{suite.base_url}/s/{slug(suite, pages)}"
                costs = []
                for _ in range(ROUNDS):
                    context = browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True, device_scale_factor=2)
                    costs.append(cost(context, url, network=SLOW_3G, slower=SLOWER))
                    context.close()
                show(pages, costs)
                context = browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True, device_scale_factor=2)
                show_weight(cost(context, url, to_the_end=True))
                context.close()
        finally:
            browser.close()
            suite.stop()


def slug(suite: RunningSuite, pages: int) -> str:
    place = {"x": 0.1, "y": 0.1, "w": 0.3, "h": 0.03, "page": 1}
    fields = [{"name": "Name", "role": "Signer", "type": "text", "areas": [place]}]
    template = suite.template(text_pdf(pages), name="Agreement", document={"fields": fields})
    signer = {"role": "Signer", "email": "s@example.com", "name": "Ann Ray"}
    body = {"template_id": template["id"], "submitters": [signer], "send_email": False}
    return str(suite.api("POST", "/submissions", body)[0]["slug"])


def text_pdf(pages: int) -> bytes:
    """Pages full of text, each with other words: a picture of one weighs what that of a contract does."""
    pdf = pikepdf.new()
    for number in range(pages):
        words = [f"{number + 1}.{row} {CLAUSE[row % 7 :]} {CLAUSE[: row % 7]}" for row in range(46)]
        content = "".join(line(text, y=770 - 15 * row, size=10) for row, text in enumerate(words))
        add_page(pdf, content, media=A4)
    return saved(pdf)


def show(pages: int, costs: list[Cost]) -> None:
    """The median of all rounds."""
    print(f"  {pages} {'page' if pages == 1 else 'pages'} of text")
    budgets: dict[str, tuple[list[Any], float]] = {
        "Start can be pressed, ms": ([one.start for one in costs], 3500),
        "the form answers, ms": ([one.alive for one in costs], 0),
        "first page seen, ms": ([one.page for one in costs], 8000),
        "bytes until the form answers": ([weight(one) for one in costs], 120_000),
        "requests until the form answers": ([len(one.until(one.alive)) for one in costs], 6),
        "layout shift": ([one.shift for one in costs], 0.02),
    }
    for name, (measured, budget) in budgets.items():
        median = statistics.median(measured)
        said = f"budget {budget:>8,}" if budget else ""
        print(
            f"    {name:<32} {median:>10,.3f} {said}" if budget == 0.02 else f"    {name:<32} {median:>10,.0f} {said}"
        )


def show_weight(whole: Cost) -> None:
    print(f"    {'bytes when scrolled through':<32} {sum(request.size for request in whole.requests):>10,.0f}")
    heaviest = max(picture.size for picture in whole.pictures)
    print(f"    {'the heaviest page, bytes':<32} {heaviest:>10,.0f} budget {60_000:>8,}")


def weight(one: Cost) -> int:
    return sum(request.size for request in one.until(one.alive))


if __name__ == "__main__":
    main()

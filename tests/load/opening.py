"""What a signer waits for when they open their form: the page, the form, the note that it was opened.

    python -m tests.load.opening

Each form is a fresh one, of the second of two parties, with 40 fields, after the first one has signed. Prints milliseconds of
each of the three requests and of all, and the processor's time that the suite's processes took for one opening. To judge a
change, run it in a checkout from before as well, one after the other and more than once.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import requests

from tests.load.figures import percentile
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite, start_suite

FORMS, WARM, FIELDS = 150, 20, 40
STEPS = ("page", "form", "view")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        suite = start_suite(Path(folder))
        try:
            slugs = sent(suite)
            for slug in slugs[:WARM]:
                opened(suite, slug)
            before = processor_seconds(suite)
            times = [opened(suite, slug) for slug in slugs[WARM:]]
            spent = processor_seconds(suite) - before
        finally:
            suite.stop()
    for number, step in enumerate(STEPS):
        show(step, [one[number] for one in times])
    show("all", [sum(one) for one in times])
    print(f"  processor {1000 * spent / len(times):7.2f} ms for each")


def sent(suite: RunningSuite) -> list[str]:
    """The slugs of whoever has yet to sign."""
    place = {"w": 0.2, "h": 0.02, "page": 1}
    fields: list[dict[str, Any]] = [
        {
            "name": f"F{number}",
            "role": "Seller" if number % 2 else "Buyer",
            "type": "text",
            "areas": [{**place, "x": 0.1 + 0.4 * (number % 2), "y": 0.05 + 0.022 * number}],
        }
        for number in range(FIELDS)
    ]
    template = suite.template(agreement_pdf(["Agreement"]), name="Agreement", document={"fields": fields})
    slugs = []
    for number in range(FORMS + WARM):
        values = {one["name"]: f"given {number}" for one in fields if one["role"] == "Seller"}
        parties = [
            {"role": "Seller", "email": f"s{number}@example.com", "values": values, "completed": True},
            {"role": "Buyer", "email": f"b{number}@example.com", "name": "Bo Buyer"},
        ]
        body = {"template_id": template["id"], "submitters": parties, "send_email": False}
        slugs.append(suite.api("POST", "/submissions", body)[1]["slug"])
    return slugs


def opened(suite: RunningSuite, slug: str) -> tuple[float, float, float]:
    """Seconds of each step of one opening, on a connection of its own, as a browser has."""
    with requests.Session() as session:
        session.get(f"{suite.base_url}/robots.txt", timeout=30)
        began = time.perf_counter()
        session.get(f"{suite.base_url}/s/{slug}", timeout=30).raise_for_status()
        with_page = time.perf_counter()
        form = session.get(f"{suite.base_url}/s/{slug}/form", timeout=30).json()
        with_form = time.perf_counter()
        assert len(form["fields"]) == FIELDS
        body = {"request_id": slug, "time_zone": "UTC", "shown": form.get("shown")}
        session.post(f"{suite.base_url}/s/{slug}/view", json=body, timeout=30).raise_for_status()
        done = time.perf_counter()
    return with_page - began, with_form - with_page, done - with_form


def processor_seconds(suite: RunningSuite) -> float:
    """Processor time that gateway and submissions, which answer, have taken so far."""
    ticks = 0
    for name in ("gateway", "submissions"):
        process = suite.programs[name].process
        assert process is not None
        ticks += sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def show(what: str, seconds: list[float]) -> None:
    middle, worst = statistics.median(seconds), percentile(seconds, 95)
    print(f"  {what:9} {1000 * middle:7.2f} ms, 95 of 100 below {1000 * worst:7.2f} ms")


if __name__ == "__main__":
    main()

"""From the last signature to `completed`, with sealed PDF and audit trail stored: beside sealing and trail in one process.

Both in the same run and interleaved: one submission through the whole suite (HTTP, bus, databases), then the same document
filled, sealed, checked and its trail made by the same functions in this process. Prints p50, p99 and their ratio, until `completed` is committed, and until a reader who asks at that moment has it by HTTP.

Then two at a time, for as long as the gauge of the event loops' lateness looks back: so it says nothing of the start, and
nothing is left out.
"""

import sqlite3
import statistics
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import requests

from tests.load.figures import percentile
from tests.load.targets import judged
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, send, sign
from tests.support.services.suite import RunningSuite, start_suite

ROUNDS = 40
GAUGE_WINDOW = 61.0
"""Seconds: the gauge is the maximum of the last minute."""
_STATUS = "SELECT status FROM submissions WHERE id = ?"


def one_completion(suite: RunningSuite, session: requests.Session, template_id: int) -> tuple[float, float]:
    """Seconds from the moment the last signer's request is sent until `completed` is committed, and until a reader sees it.

    The reader asks once, as soon as the row is committed: asking all the time would take a good part of both processors.
    """
    seller, buyer = send(suite, template_id, order="random", send_email=False)
    sign(suite, seller["slug"], SELLER_VALUES)
    body = {"values": filled(suite, buyer["slug"], BUYER_VALUES), "request_id": str(uuid.uuid4())}
    address = f"{suite.base_url}/api/submissions/{seller['submission_id']}"
    session.get(address, timeout=30)
    began = time.perf_counter()
    session.post(f"{suite.base_url}/s/{buyer['slug']}/complete", json=body, timeout=60).raise_for_status()
    with closing(sqlite3.connect(suite.var_dir / "databases" / "submissions.sqlite")) as database:
        version = None
        while version == (version := database.execute("PRAGMA data_version").fetchone()) or (
            database.execute(_STATUS, [seller["submission_id"]]).fetchone() != ("completed",)
        ):
            assert time.perf_counter() < began + 60, "not completed within a minute"
            time.sleep(0.001)
    committed = time.perf_counter() - began
    assert session.get(address, timeout=30).json()["status"] == "completed"
    return committed, time.perf_counter() - began


def main(rounds: int = ROUNDS) -> None:
    from tests.load.rendering.seal import in_process_completion

    alone = in_process_completion(agreement_pdf())
    with tempfile.TemporaryDirectory() as folder:
        suite = start_suite(Path(folder))
        try:
            session = requests.Session()
            session.headers["X-Auth-Token"] = suite.api_key
            template_id = suite.template(agreement_pdf(), name="Agreement")["id"]
            for _ in range(5):
                one_completion(suite, session, template_id)
                alone()
            committed, seen, inside = [], [], []
            for _ in range(rounds):
                of_this = one_completion(suite, session, template_id)
                committed.append(of_this[0])
                seen.append(of_this[1])
                began = time.perf_counter()
                alone()
                inside.append(time.perf_counter() - began)
            two_at_a_time(suite, template_id)
            late = event_loop_lateness(suite)
        finally:
            suite.stop()
    print("Last signature to completed, one after the other:")
    alone_p50 = statistics.median(inside)
    for name, figures in (("committed", committed), ("seen", seen), ("one process", inside)):
        middle, slow = statistics.median(figures), percentile(figures, 99)
        print(
            f"  {name:<12} p50 {middle * 1e3:7.1f} ms   p99 {slow * 1e3:7.1f} ms   ratio of p50 {middle / alone_p50:.2f}"
        )
    print(f"  committed: {judged('completion', statistics.median(committed) / alone_p50)}")
    print(
        "Event loops late at most, while two are being sealed: "
        + ", ".join(f"{name} {ms:.1f} ms" for name, ms in late.items())
        + f" ({judged('late', max(late.values()))})"
    )


def two_at_a_time(suite: RunningSuite, template_id: int) -> None:
    """Complete submissions on two threads until the gauge remembers nothing else."""
    end = time.monotonic() + GAUGE_WINDOW

    def complete() -> None:
        with requests.Session() as session:
            session.headers["X-Auth-Token"] = suite.api_key
            while time.monotonic() < end:
                one_completion(suite, session, template_id)

    with ThreadPoolExecutor(2) as threads:
        for thread in [threads.submit(complete) for _ in range(2)]:
            thread.result()


def event_loop_lateness(suite: RunningSuite) -> dict[str, float]:
    """The gauge of each process with an event loop, in milliseconds."""
    found: dict[str, float] = {}
    for name, program in suite.programs.items():
        text = requests.get(f"http://127.0.0.1:{program.health_port}/metrics", timeout=5).text
        for line in text.splitlines():
            if line.startswith("countersign_event_loop_late_seconds"):
                found[name] = max(found.get(name, 0.0), float(line.rsplit(" ", 1)[1]) * 1e3)
    return found


if __name__ == "__main__":
    main()

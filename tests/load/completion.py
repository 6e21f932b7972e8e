"""From the last signature to `completed`, with sealed PDF and audit trail stored: beside sealing and trail in one process.

Both in the same run and interleaved: one submission through the whole suite (HTTP, bus, databases), then the same document
filled, sealed, checked and its trail made by the same functions in this process. Prints p50, p99, their ratio (target: 3).
"""

import statistics
import tempfile
import time
import uuid
from pathlib import Path

import requests

from tests.load.figures import percentile
from tests.support.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, send, sign
from tests.support.suite import RunningSuite, start_suite

ROUNDS = 40


def one_completion(suite: RunningSuite, session: requests.Session, template_id: int) -> float:
    """Seconds from the moment the last signer's request is sent until a reader sees `completed`."""
    seller, buyer = send(suite, template_id, order="random", send_email=False)
    sign(suite, seller["slug"], SELLER_VALUES)
    body = {"values": filled(suite, buyer["slug"], BUYER_VALUES), "request_id": str(uuid.uuid4())}
    address = f"{suite.base_url}/api/submissions/{seller['submission_id']}"
    session.get(address, timeout=30)
    began = time.perf_counter()
    session.post(f"{suite.base_url}/s/{buyer['slug']}/complete", json=body, timeout=60).raise_for_status()
    while session.get(address, timeout=30).json()["status"] != "completed":
        time.sleep(0.002)
    return time.perf_counter() - began


def main(rounds: int = ROUNDS) -> None:
    from tests.load.seal import in_process_completion

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
            whole, inside = [], []
            for _ in range(rounds):
                whole.append(one_completion(suite, session, template_id))
                began = time.perf_counter()
                alone()
                inside.append(time.perf_counter() - began)
            late = event_loop_lateness(suite)
        finally:
            suite.stop()
    print("Last signature to completed, one after the other:")
    for name, figures in (("whole suite", whole), ("one process", inside)):
        print(
            f"  {name:<12} p50 {statistics.median(figures) * 1e3:7.1f} ms   p99 {percentile(figures, 99) * 1e3:7.1f} ms"
        )
    print(f"  ratio of p50: {statistics.median(whole) / statistics.median(inside):.2f} (target 3)")
    print("Event loops late at most, while sealing: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in late.items()))


def event_loop_lateness(suite: RunningSuite) -> dict[str, float]:
    """The gauge of each process with an event loop, in milliseconds."""
    found = {}
    for name, program in suite.programs.items():
        text = requests.get(f"http://127.0.0.1:{program.health_port}/metrics", timeout=5).text
        for line in text.splitlines():
            if line.startswith("countersign_event_loop_late_seconds"):
                found[name] = max(found.get(name, 0.0), float(line.rsplit(" ", 1)[1]) * 1e3)
    return found


if __name__ == "__main__":
    main()

"""Requests per second through the gateway, beside bare Flask under gunicorn with the same answers.

    python -m tests.load.gateway

Ours: key look-up, request and response validation, the call over the bus, the database. Flask's, one process with 8 threads
and `jsonify`, twice: the very same answers from memory, and with the call in, that is, asking the same service over the same
bus for each of them, without keys and validation. The first ratio says what a caller gets for all that is done for them, the
second what the gateway costs. All in turns, with wrk and 8 connections, on the same machine, whose processors the gateway,
broker and services share. Prints requests per second, p50, p99 and the ratios.
"""

import base64
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from deploy.rabbitmq import free_port
from tests.load.targets import judged
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite, start_suite, wait_until

ROUNDS, SECONDS, CONNECTIONS = 5, 3, 8
SIDES = ("gateway", "flask, call in", "flask, memory")
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass
class Case:
    """One request, and what it answered."""

    name: str
    method: str
    path: str
    target: str
    body: Any = None
    answer: Any = None
    figures: dict[str, list["Figures"]] = field(default_factory=lambda: {side: [] for side in SIDES})


@dataclass(frozen=True)
class Figures:
    """Of one wrk run; p50 and p99 in milliseconds."""

    rps: float
    p50: float
    p99: float


def cases(base_url: str, key: str) -> list[Case]:
    """A template with two roles, twelve submissions of it, and the three requests with their answers."""
    session = requests.Session()
    session.headers["X-Auth-Token"] = key
    template = _template(session, base_url)
    new = {
        "template_id": template["id"],
        "send_email": False,
        "submitters": [
            {"role": "Seller", "email": "ann@example.com", "name": "Ann Smith", "values": {"Company": "Acme"}},
            {"role": "Buyer", "email": "bob@example.com", "name": "Bob Ray"},
        ],
    }
    for _ in range(12):
        session.post(f"{base_url}/api/submissions", json=new, timeout=60).raise_for_status()
    chosen = [
        Case("GET template", "GET", f"/api/templates/{template['id']}", "get"),
        Case("list of 10", "GET", "/api/submissions?limit=10", "list"),
        Case("POST, 2 signers", "POST", "/api/submissions", "post", new),
    ]
    for case in chosen:
        answer = session.request(case.method, base_url + case.path, json=case.body, timeout=60)
        answer.raise_for_status()
        case.answer = answer.json()
    return chosen


def _template(session: requests.Session, base_url: str) -> Any:
    document = {"name": "agreement", "file": base64.b64encode(agreement_pdf()).decode()}
    answer = session.post(f"{base_url}/api/templates/pdf", json={"documents": [document]}, timeout=90)
    answer.raise_for_status()
    return answer.json()


_FLASK = """
import json
import os
import uuid
from flask import Flask, jsonify, request
from contracts.rpc import submissions, templates
from contracts.runtime.bus.client import RpcClient
from contracts.types import Account, Actor
app = Flask("bare")
answers = json.load(open({file!r}))
bus = RpcClient(os.environ["AMQP_URL"])
admin = Actor(user_id=1, role="admin", email="admin@example.com", name="")
account = Account()
@app.get("/memory/api/templates/<int:number>")
def remembered_template(number):
    return jsonify(answers["GET template"])
@app.get("/memory/api/submissions")
def remembered_submissions():
    return jsonify(answers["list of 10"])
@app.post("/memory/api/submissions")
def remembered_creation():
    request.get_json()
    return jsonify(answers["POST, 2 signers"])
@app.get("/call/api/templates/<int:number>")
def template(number):
    return jsonify(bus.call_json(templates.GET, templates.GetTemplate(actor=admin, id=number)))
@app.get("/call/api/submissions")
def page():
    asked = submissions.api.ListSubmissions(actor=admin, limit=int(request.args["limit"]))
    return jsonify(bus.call_json(submissions.api.LIST, asked))
@app.post("/call/api/submissions")
def create():
    more = dict(request_id=str(uuid.uuid4()), actor=admin, account=account)
    made = bus.call_json(submissions.api.CREATE, submissions.api.CreateSubmission(**more, **request.get_json()))
    return jsonify(made["submitters"])
"""


@contextmanager
def bare_flask(folder: Path, chosen: list[Case], amqp_url: str) -> Iterator[str]:
    """The address of Flask under gunicorn: ``/memory`` has the answers of ``chosen``, ``/call`` asks the services."""
    (folder / "answers.json").write_text(json.dumps({case.name: case.answer for case in chosen}))
    (folder / "bare.py").write_text(_FLASK.format(file=str(folder / "answers.json")))
    port = free_port()
    arguments = ["-k", "gthread", "--threads", "8", "-w", "1", "-b", f"127.0.0.1:{port}", "bare:app"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", *arguments],
        cwd=folder,
        env={**os.environ, "AMQP_URL": amqp_url, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(f"{address}/call{chosen[0].path}"), what="bare Flask answers")
        yield address
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.ConnectionError:
        return False


def wrk(base_url: str, key: str, case: Case, folder: Path, seconds: int) -> Figures:
    """One run. Raises when any answer was not 2xx."""
    script = folder / "request.lua"
    body = f"wrk.body = [==[{json.dumps(case.body)}]==]\n" if case.body is not None else ""
    script.write_text(
        f'wrk.method = "{case.method}"\nwrk.headers["X-Auth-Token"] = "{key}"\n'
        f'wrk.headers["Content-Type"] = "application/json"\n{body}'
    )
    arguments = [
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{seconds}s",
        "--latency",
        "--timeout",
        "30s",
        "-s",
        str(script),
        base_url + case.path,
    ]
    output = subprocess.run(["wrk", *arguments], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        raise AssertionError(f"{case.name} at {base_url}: {output}")
    speed = re.search(r"Requests/sec:\s+([\d.]+)", output)
    late = {
        percent: float(n) * _UNITS[unit] for percent, n, unit in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)", output)
    }
    assert speed is not None, output
    return Figures(float(speed[1]), late["50"], late["99"])


def measure(suite: RunningSuite, rounds: int = ROUNDS, seconds: int = SECONDS) -> list[Case]:
    """All cases on all sides, in turns."""
    assert suite.broker is not None
    chosen = cases(suite.base_url, suite.api_key)
    with tempfile.TemporaryDirectory() as name, bare_flask(Path(name), chosen, suite.broker.amqp_url) as flask:
        address = dict(zip(SIDES, (suite.base_url, f"{flask}/call", f"{flask}/memory"), strict=True))
        for number in range(rounds + 1):
            for case in chosen:
                for side in sorted(SIDES, reverse=bool(number % 2)):
                    figures = wrk(address[side], suite.api_key, case, Path(name), seconds)
                    if number:  # the first round warms up
                        case.figures[side].append(figures)
    return chosen


def report(chosen: list[Case]) -> None:
    print(f"HTTP with {CONNECTIONS} connections, the gateway with both validations and the bus:")
    for case in chosen:
        for side, runs in case.figures.items():
            rps, p50, p99 = (statistics.median(getattr(run, what) for run in runs) for what in ("rps", "p50", "p99"))
            print(f"  {case.name:<16} {side:<14} {rps:7.0f} rps   p50 {p50:6.2f} ms   p99 {p99:6.2f} ms")
        same, memory = (_ratio(case, side) for side in SIDES[1:])
        print(
            f"  {'':<16} ratio {same:.2f} with the call in ({judged('call', same)}), {memory:.2f} to answers from memory"
            f" ({judged(case.target, memory)})"
        )


def _ratio(case: Case, side: str) -> float:
    pairs = zip(case.figures["gateway"], case.figures[side], strict=True)
    return statistics.median(ours.rps / theirs.rps for ours, theirs in pairs)


def main() -> None:
    if shutil.which("wrk") is None:
        sys.exit("wrk, which this measures with, is not installed: apt-get install wrk")
    with tempfile.TemporaryDirectory() as folder:
        suite = start_suite(Path(folder))
        try:
            report(measure(suite))
        finally:
            suite.stop()


if __name__ == "__main__":
    main()

"""Make the pictures of the dashboard in docs/pictures: ``python -m docs.programs.make_dashboard``.

It starts a suite with the providers that are there to be tried, has signers at work in it, and a real Prometheus that asks
its processes how they are. Then it puts the queries of ``deploy/observability/dashboard.json`` to Prometheus, as Grafana would,
and draws the answers where Grafana lays the panels out (``dashboard/``). It is no picture of Grafana, which no registry that
the tests install from has.

It takes ten minutes. ``--answers FILE`` keeps the answers there; where they are there already, it only draws them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from deploy.services import ROOT
from docs.programs.dashboard.answers import answers_of
from docs.programs.dashboard.drawing import draw

ALERTS = ROOT / "deploy/observability/alerts.yaml"
MINUTES = 10
SIGNERS = 4
"""At once."""
EVERY = 15
"""Seconds from one scrape to the next."""
WITH_PROVIDERS_EVERY = 15.0
RESTARTED = "background"
"""The process that is killed and started again in between, so that the picture shows what that looks like."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=Path, help="keep Prometheus' answers in this file, or draw those in it")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long the suite is at work")
    options = parser.parse_args()
    if options.answers and options.answers.exists():
        answers = json.loads(options.answers.read_text())
    else:
        answers = _measured_answers(options.minutes)
        if options.answers:
            options.answers.write_text(json.dumps(answers))
    for file in draw(answers):
        sys.stdout.write(f"{file}: {file.stat().st_size / 1000:.0f} kB\n")


def _commit() -> str:
    """Return the commit, as an image is told it, which a checkout is not."""
    process = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
    )
    return process.stdout.strip()


def _measured_answers(minutes: float) -> dict[str, Any]:
    """Return what Prometheus answers after so many minutes of work."""
    from deploy.demo import PURCHASE_AGREEMENT, Demo
    from deploy.rabbitmq import free_port
    from tests.load.agreements.agreements import LoadedSuite, Signers
    from tests.support.material.agreement import agreement_pdf
    from tests.support.servers.prometheus import PrometheusServer

    signers = Signers()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            settings = {"SMTP_URL": f"smtp://127.0.0.1:{signers.ports['mails']}", "COUNTERSIGN_REVISION": _commit()}
            suite = LoadedSuite(folder / "suite", replicas=1, environment=settings, with_providers=True)
            try:
                suite.start()
                suite.start_providers()
                demo = Demo(suite, folder)
                demo.set_providers()
                for port, events in (
                    (signers.ports["receiver"], ["form.completed", "submission.completed"]),
                    (free_port(), ["submission.completed"]),  # nobody is there
                ):
                    hook = {"url": f"http://127.0.0.1:{port}/hook", "events": events}
                    suite.api("POST", "/webhooks", hook, status=201)
                template = suite.template(agreement_pdf(), name="Agreement")["id"]
                purchase = demo.make_template(PURCHASE_AGREEMENT, folder)
                with PrometheusServer(folder / "prometheus", suite, every=EVERY, rules=[ALERTS]) as prometheus:
                    began = time.time()
                    arguments = {
                        "base_urls": [suite.base_url],
                        "api_key": suite.api_key,
                        "template": template,
                        "signers": SIGNERS,
                        "seconds": 60 * minutes,
                    }
                    load = threading.Thread(target=lambda: signers.ask(**arguments))
                    load.start()
                    restarted = False
                    while load.is_alive():
                        _, people = demo.send(
                            purchase,
                            PURCHASE_AGREEMENT,
                            {"certsign": {"enabled": True}, "dutystamp": {"enabled": True}},
                        )
                        for person in people:
                            demo.sign(person, PURCHASE_AGREEMENT)
                        if not restarted and time.time() - began > 40 * minutes:
                            suite.kill_program(RESTARTED)
                            suite.start_program(RESTARTED)
                            restarted = True
                        load.join(WITH_PROVIDERS_EVERY)
                    return answers_of(prometheus, began, time.time(), EVERY)
            finally:
                suite.stop()
    finally:
        signers.end()


if __name__ == "__main__":
    main()

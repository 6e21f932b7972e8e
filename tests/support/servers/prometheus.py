"""Debian's Prometheus on loopback, in a process of its own: it scrapes the health port of each process of a suite and answers
queries through its HTTP API, as it does for Grafana."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import requests

from deploy.rabbitmq import free_port
from deploy.suite import Suite
from tests.support.services.suite import wait_until

JOB = "countersign"


class PrometheusServer:
    """It begins with nothing, in ``folder``. ``every``: the seconds from one scrape to the next. ``rules``: files of alerts."""

    def __init__(self, folder: Path, suite: Suite, *, every: int = 1, rules: Sequence[Path] = ()) -> None:
        folder.mkdir(parents=True)
        self.folder, self.port, self.every = folder, free_port(), every
        self.url = f"http://127.0.0.1:{self.port}/api/v1"
        self.processes = {
            name: f"127.0.0.1:{program.health_port}"
            for name, program in suite.programs.items()
            if not program.to_be_tried
        }
        configuration = folder / "prometheus.yaml"
        configuration.write_text(json.dumps(self._configuration(rules)))  # what is JSON is YAML
        with (folder / "prometheus.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={configuration}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until(self._is_ready, what="Prometheus")

    def __enter__(self) -> "PrometheusServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def ask(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """The series that an expression has at one time, the present one unless another is given."""
        return self._get("query", query=expression, **({} if at is None else {"time": at}))

    def ask_range(self, expression: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """The series that an expression has from ``start`` to ``end``, a value every ``step`` seconds."""
        return self._get("query_range", query=expression, start=start, end=end, step=step)

    def rules(self) -> list[dict[str, Any]]:
        """Each of its rules, with its state and how its last evaluation went."""
        groups = requests.get(f"{self.url}/rules", timeout=60).json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, what: str, **asked: Any) -> list[dict[str, Any]]:
        answer = requests.get(f"{self.url}/{what}", params=asked, timeout=60)
        assert answer.status_code == 200, f"{asked['query']}: {answer.text}"
        found = answer.json()
        assert not found.get("warnings"), found["warnings"]
        series: list[dict[str, Any]] = found["data"]["result"]
        return series

    def _configuration(self, rules: Sequence[Path]) -> dict[str, Any]:
        """Instances are called by what they are, as by their pods' names in a cluster."""
        interval = f"{self.every}s"
        targets = [{"targets": [port], "labels": {"instance": name}} for name, port in self.processes.items()]
        return {
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": [str(file) for file in rules],
            "scrape_configs": [{"job_name": JOB, "static_configs": targets}],
        }

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, (self.folder / "prometheus.log").read_text()
        try:
            return requests.get(f"http://127.0.0.1:{self.port}/-/ready", timeout=5).status_code == 200
        except requests.ConnectionError:
            return False

"""The README's first calls are run as they stand there, with curl; only the address and the ids are those of this suite."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.support.material.agreement import sign
from tests.support.services.suite import RunningSuite, wait_until

README = Path(__file__).resolve().parents[4] / "README.md"
BLOCKS = re.compile(r"```sh\n(?P<call>(?:(?!```).)*?curl .*?)```\n```json\n(?P<answer>.*?)```", re.DOTALL)
SAME = {"name", "role", "roles", "type", "required", "status", "sealing_status", "email", "values", "error", "code"}
SAME |= {"details", "field", "reason"}
"""Keys whose values in the README are the very ones that come."""


def like(shown: Any, came: Any, where: str = "answer") -> None:
    """Everything that the README shows is there, of the same type, and as shown where it cannot differ."""
    assert type(shown) is type(came), where
    if isinstance(shown, dict):
        for key, value in shown.items():
            assert key in came, f"{where}.{key}"
            like(value, came[key], f"{where}.{key}")
            if key in SAME and not isinstance(value, dict | list):
                assert value == came[key], f"{where}.{key}"
    if isinstance(shown, list):
        assert len(shown) == len(came), where
        for index, value in enumerate(shown):
            like(value, came[index], f"{where}[{index}]")


def test_the_first_calls_give_the_answers_shown(sqlite_suite: RunningSuite) -> None:
    blocks = [(found["call"], json.loads(found["answer"])) for found in BLOCKS.finditer(README.read_text())]
    assert len(blocks) == 6
    assert README.read_text().count("curl -H") == len(blocks)
    template = submission = 1
    for call, shown in blocks:
        here = call.replace("localhost:8000", f"localhost:{sqlite_suite.port}").replace("curl ", "curl -sS ")
        here = here.replace("var/admin-api-key", str(sqlite_suite.var_dir / "admin-api-key"))
        here = here.replace('"template_id": 1', f'"template_id": {template}')
        here = here.replace("/submissions/1", f"/submissions/{submission}")
        if "key=" not in here:
            here = f'key="X-Auth-Token: {sqlite_suite.api_key}"\n{here}'
        came = json.loads(subprocess.run(["bash", "-ec", here], capture_output=True, text=True, check=True).stdout)
        like(shown, came)
        if "/templates/html" in call:
            template = came["id"]
        if isinstance(came, list):
            submission = came[0]["submission_id"]
            sign(sqlite_suite, came[0]["slug"], {"Full name": "Ann Ray"})
            path = f"/submissions/{submission}"
            wait_until(lambda at=path: sqlite_suite.api("GET", at)["status"] == "completed", what="the sealing")

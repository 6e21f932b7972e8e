"""A judge of Content-Security-Policies that we did not write: Google's CSP Evaluator.

``deploy/local.py`` installs it from ``tests/support/judges/pages/csp_evaluator``.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_MODULES = Path(sys.prefix) / "csp-evaluator"
_SCRIPT = Path(__file__).parent / "csp_evaluator" / "evaluate.mjs"


def weaknesses(policies: Iterable[str]) -> dict[str, list[str]]:
    """Return what it finds in each policy: sentences that begin with the severity, the directive and its value."""
    asked = sorted(set(policies))
    done = subprocess.run(
        ["node", str(_SCRIPT), str(_MODULES)], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(asked, json.loads(done.stdout), strict=True))

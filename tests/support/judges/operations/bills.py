"""Bills of materials as CycloneDX's own schema sees them, and what they list."""

import json
import subprocess
import sys
from typing import Any


def faults(*bills: str) -> list[str | None]:
    """What the schema of the standard finds wrong with each."""
    command = [sys.executable, "-m", "tests.support.judges.operations.bill_judge"]
    done = subprocess.run(command, input=json.dumps(bills), stdout=subprocess.PIPE, text=True, check=True)
    found: list[str | None] = json.loads(done.stdout)
    return found


def packages(bill: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The components of a kind; ``kind`` is that of the package URL."""
    return [one for one in bill["components"] if one["purl"].startswith(f"pkg:{kind}/")]

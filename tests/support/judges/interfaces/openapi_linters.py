"""Judges of OpenAPI documents that we did not write: the linters of Redocly and Stoplight (Spectral), with their recommended rules.

``deploy/local.py`` installs them from ``tests/support/judges/interfaces/openapi``; which of their rules is off, and why, says ``lint.mjs``.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LINTERS = ("redocly", "spectral")
MODULES = Path(sys.prefix) / "openapi-linters"
_SCRIPT = Path(__file__).parent / "openapi" / "lint.mjs"


def findings(folder: Path, documents: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return what each linter says of each of the documents, by their names. ``folder`` is where they are put; one Node.js reads all."""
    files = {name: folder / f"{name}.json" for name in documents}
    for name, file in files.items():
        file.write_text(json.dumps(documents[name]))
    command = ["node", str(_SCRIPT), str(MODULES), *map(str, files.values())]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return {name: told[str(file)] for name, file in files.items()}

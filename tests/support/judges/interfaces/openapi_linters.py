"""Judges of OpenAPI documents that we did not write: the linters of Redocly and Stoplight (Spectral), and vacuum, with their
recommended rules.

``deploy/local.py`` installs the first two from ``tests/support/judges/interfaces/openapi``, the lock of the tests the third; all
their rules are on but those of vacuum that ``vacuum.yaml`` names, with the reasons, and ``OF_SCHEMAS``.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import vacuum

LINTERS = ("redocly", "spectral")
MODULES = Path(sys.prefix) / "openapi-linters"
_SCRIPT = Path(__file__).parent / "openapi" / "lint.mjs"
_RULES = Path(__file__).parent / "openapi" / "vacuum.yaml"
_WITH_ROOM = "--max-semi-space-size=128"
"""Megabytes for what is new: V8 looks for garbage less often, which takes a tenth of the time else."""
OF_SCHEMAS = "oas3-missing-example", "schema is missing `examples` or `example`"
"""Of what vacuum misses examples of, what it says of schemas is passed over: it asks each of 1,800 for one, each ``true`` or
``false``, each word of a list and each page of records. Every body, parameter and header has a whole one, in which all of these
are; written out at each key they would double the document and say nothing new."""
_VACUUM = Path(vacuum.__file__).parent / "lib" / "vacuum"


def findings(folder: Path, documents: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return what each linter says of each of the documents, by their names. ``folder`` is where they are put; one Node.js reads all."""
    files = {name: folder / f"{name}.json" for name in documents}
    for name, file in files.items():
        file.write_text(json.dumps(documents[name]))
    command = ["node", _WITH_ROOM, str(_SCRIPT), str(MODULES), *map(str, files.values())]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return {name: told[str(file)] for name, file in files.items()}


def findings_of_vacuum(folder: Path, document: Any) -> list[str]:
    """Return what vacuum says of a document. Of OpenAPI 3.1 only: in one of 3.0 it does not know ``nullable``, and takes each null in an
    example for wrong."""
    (folder / "document.json").write_text(json.dumps(document))
    options = ["--remote=false", "--timeout", "600", "--no-style", "--ruleset", str(_RULES), "--no-pretty", "--stdout"]
    done = subprocess.run(
        [str(_VACUUM), "spectral-report", *options, "document.json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    said = [one for one in json.loads(done.stdout) or [] if (one["code"], one["message"]) != OF_SCHEMAS]
    return [f"{one['code']} at {'/'.join(one['path'])}: {one['message']}" for one in said]

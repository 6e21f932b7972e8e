"""``countersign evidence``: fetch what proves a submission, and check it with the program that goes along with it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from deploy.command.remote import options
from deploy.command.remote.installation import Misused, Refused, Unreachable

PROGRAM = Path(__file__).parents[3] / "services" / "gateway" / "evidence" / "verify.py"
"""Our copy: the one in the ZIP came from whoever is to be checked."""


def main(arguments: list[str]) -> int:
    """Run the command: 0 when all of the evidence holds, 1 when something does not; else one of the statuses of ``options``."""
    parser = options.parser(
        "evidence",
        "Fetch the evidence of a sealed submission (a ZIP) and check it, on this machine and with its own program.",
    )
    parser.add_argument("id", type=int, metavar="ID", help="the submission")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it there; evidence-ID.zip by default")
    parser.add_argument("--root", type=Path, metavar="FILE", help="trust this root certificate (PEM) and no other")
    chosen = parser.parse_args(arguments)
    to = chosen.output or Path(f"evidence-{chosen.id}.zip")
    try:
        if chosen.root is not None and not chosen.root.is_file():
            raise Misused(f"there is no file {chosen.root}")
        digest = options.installation_of(chosen).fetch(f"/submissions/{chosen.id}/evidence", to)
    except (Misused, Refused, Unreachable, OSError) as error:
        return options.tell(error, as_json=chosen.json)
    if not chosen.json:
        print(f"{to}  SHA-256 {digest}", flush=True)
        return check(to, chosen.root)
    done = subprocess.run(_command(to, chosen.root), check=False, capture_output=True, text=True)
    result = {"file": str(to), "sha256": digest, "holds": done.returncode == 0, "report": done.stdout.splitlines()}
    print(json.dumps(result))
    return done.returncode


def check(path: Path, root: Path | None) -> int:
    """Check evidence, a ZIP or the folder that it was unpacked into, and say what came of it: 0 when all of it holds, 1 when
    something does not, 2 when it cannot be read."""
    return subprocess.run(_command(path, root), check=False).returncode


def is_evidence(path: Path) -> bool:
    """Tell whether a file, or folder, is to be checked as evidence. Raises OSError where there is none."""
    if path.is_dir():
        return True
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _command(path: Path, root: Path | None) -> list[str]:
    more = ["--openssl"] if shutil.which("openssl") else []  # without it, the program says how it is done
    more += ["--root", str(root)] if root is not None else []
    return [sys.executable, str(PROGRAM), str(path), *more]

"""Faults of somebody else's suite: commands that its operator writes down.

[[fault]]
name = "kill webhooks"
begin = "kubectl -n countersign delete pod -l app=webhooks-serve --force"
end = ""                 # optional
seconds = 5              # between the two
weight = 2               # optional: how often it is drawn
touches = ["broker"]     # optional: what is away meanwhile
"""

import subprocess
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """One fault: ``begin``, ``seconds``, ``end``, both run by the shell."""

    name: str
    begin: str
    end: str = ""
    seconds: float = 5.0
    weight: float = 1.0
    touches: tuple[str, ...] = ()

    def happen(self) -> str | None:
        """Do it; what went wrong with the commands themselves, or None."""
        try:
            begun = _run(self.begin)
            time.sleep(self.seconds)
        finally:
            ended = _run(self.end) if self.end else None
        return begun or ended


def read(path: Path) -> list[Command]:
    """The faults of a file. TypeError names a key that there is not, tomllib.TOMLDecodeError the line that is no TOML."""
    listed = tomllib.loads(path.read_text()).get("fault", [])
    return [Command(**{**each, "touches": tuple(each.get("touches", ()))}) for each in listed]


def _run(command: str) -> str | None:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return f"{command!r} ended with {done.returncode}: {done.stderr[-300:]}" if done.returncode else None

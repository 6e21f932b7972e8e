"""Makes a release: one version everywhere, and its notes from CHANGELOG.md. A release is a tag on the commit that says so.

    .venv/bin/python -m deploy.release.make_release prepare 0.2.0
    git commit --all --message "Release 0.2.0"
    .venv/bin/python -m deploy.release.make_release notes 0.2.0 | git tag --annotate v0.2.0 --cleanup whitespace --file -

`prepare` gives what is unreleased in CHANGELOG.md the version and today's date, and sets the version where it stands: in
`pyproject.toml`, of which `GET /version` and `countersign_build_info` have it, and in the images' names and labels. `notes`
prints what CHANGELOG.md says of a version. Images are built of the tag (deploy/RUNBOOK.md, "Deploying").
"""

import datetime
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.services import ROOT

CHANGELOG = "CHANGELOG.md"
UNRELEASED = "## Unreleased\n"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_PLACES = (
    "pyproject.toml", "services/Dockerfile", "deploy/trial.Dockerfile", "deploy/compose.yaml", "deploy/kubernetes/**/*.yaml"
)  # fmt: skip
"""Files that have the version in them: the project's own, and those that make or name images."""


class NotReleased(Exception):
    """There is no such release, or it cannot be made; the message says why."""


def main(arguments: Sequence[str]) -> int:
    """Run one of the commands in the module's docstring."""
    if len(arguments) != 2 or arguments[0] not in ("prepare", "notes"):
        print(__doc__, file=sys.stderr)
        return 2
    command, version = arguments
    try:
        if command == "prepare":
            prepare(ROOT, version, datetime.datetime.now(datetime.UTC).date())
        else:
            print(notes((ROOT / CHANGELOG).read_text(), version), end="")
    except NotReleased as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


def prepare(root: Path, version: str, day: datetime.date) -> None:
    """Set the version in all files below ``root`` that have it. Raises NotReleased, and then has changed none of them."""
    project = (root / "pyproject.toml").read_text()
    (before,) = re.findall(r'^version = "(.*)"$', project, re.MULTILINE)
    if _numbers(version) <= _numbers(before):
        raise NotReleased(f"{version} does not come after {before}, which pyproject.toml has")
    changed = {root / CHANGELOG: released((root / CHANGELOG).read_text(), version, day)}
    stands = re.compile(
        rf'(^version = "|countersign/[a-z]+:|newTag: |image\.version=){re.escape(before)}(?![\w.])', re.MULTILINE
    )
    for path in [path for place in _PLACES for path in root.glob(place)]:
        text = path.read_text()
        changed[path] = stands.sub(lambda match: f"{match[1]}{version}", text)
    for path, text in changed.items():
        path.write_text(text)


def released(changelog: str, version: str, day: datetime.date) -> str:
    """Return the change log with all that is unreleased under a heading of the version. Raises NotReleased where that is
    nothing, or the version is there already."""
    if re.search(rf"^## {re.escape(version)}\b", changelog, re.MULTILINE):
        raise NotReleased(f"{CHANGELOG} has {version} already")
    if not _section(changelog, UNRELEASED):
        raise NotReleased(f"{CHANGELOG} has nothing that is unreleased")
    return changelog.replace(UNRELEASED, f"{UNRELEASED}\n## {version} ({day})\n", 1)


def notes(changelog: str, version: str) -> str:
    """Return what the change log says of a version, after a line with its name. Raises NotReleased where it has none."""
    heading = re.search(rf"^## {re.escape(version)} \((.*)\)\n", changelog, re.MULTILINE)
    if heading is None:
        raise NotReleased(f"{CHANGELOG} does not know {version}")
    return f"Countersign {version}, {heading[1]}\n\n{_section(changelog, heading[0])}\n"


def _section(changelog: str, heading: str) -> str:
    """Return what stands under a heading, down to the next of its rank."""
    _, separator, rest = changelog.partition(heading)
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip() if separator else ""


def _numbers(version: str) -> tuple[int, ...]:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise NotReleased(f"{version} is no version such as 0.2.0")
    return tuple(map(int, match.groups()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

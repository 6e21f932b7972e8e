"""A release: one version everywhere, with notes that git takes for its tag."""

import datetime
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from contracts.runtime.monitoring import build
from deploy.release.make_release import CHANGELOG, NotReleased, notes, prepare, released
from deploy.services import ROOT

DAY = datetime.date(2027, 1, 31)
LOG = "# Changes\n\nOf us.\n\n## Unreleased\n\n### New\n\n- What is new.\n\n## 0.1.0 (2026-01-02)\n\n- The first.\n"


def version_after() -> str:
    first, *rest = build.version().split(".")
    return ".".join([str(int(first) + 1), *rest])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of every file of the project that names a version, and others beside them."""
    for name in ("pyproject.toml", CHANGELOG, "services/Dockerfile", "deploy/trial.Dockerfile", "deploy/compose.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "deploy/kubernetes", tmp_path / "deploy/kubernetes")
    return tmp_path


def images(folder: Path) -> set[str]:
    """The versions of our images that the files name, in tags and labels."""
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    return {
        tag for text in texts for tag in re.findall(r"(?:countersign/[a-z]+:|newTag: |image\.version=)(\d[\w.]*)", text)
    }


def test_a_release_has_one_version_everywhere(checkout: Path) -> None:
    assert images(checkout) == {build.version()}
    prepare(checkout, version_after(), DAY)
    assert images(checkout) == {version_after()}
    assert f'\nversion = "{version_after()}"\n' in (checkout / "pyproject.toml").read_text()
    changed = (checkout / "pyproject.toml").read_text().replace(version_after(), build.version(), 1)
    assert changed == (ROOT / "pyproject.toml").read_text(), "the versions of what we need are none of ours"


def test_git_takes_the_notes_for_a_tag(checkout: Path) -> None:
    before = (ROOT / CHANGELOG).read_text().partition("## Unreleased\n")[2].partition("\n## ")[0].strip()
    prepare(checkout, version_after(), DAY)
    said = notes((checkout / CHANGELOG).read_text(), version_after())
    assert said == f"Countersign {version_after()}, 2027-01-31\n\n{before}\n"

    def git(*arguments: str, given: str | None = None) -> str:
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        done = subprocess.run(
            ["git", *who, *arguments], cwd=checkout, input=given, capture_output=True, text=True, check=True
        )
        return done.stdout

    git("init", "--quiet")
    git("add", CHANGELOG)
    git("commit", "--quiet", "--message", "Release")
    git("tag", "--annotate", "v1", "--cleanup", "whitespace", "--file", "-", given=said)
    assert git("for-each-ref", "--format=%(contents)", "refs/tags/v1").strip() == said.strip(), (
        "headings are no comments"
    )


def test_what_is_unreleased_gets_a_heading() -> None:
    log = released(LOG, "0.2.0", DAY)
    assert "## Unreleased\n\n## 0.2.0 (2027-01-31)\n\n### New\n" in log
    assert notes(log, "0.2.0") == "Countersign 0.2.0, 2027-01-31\n\n### New\n\n- What is new.\n"
    assert notes(log, "0.1.0") == "Countersign 0.1.0, 2026-01-02\n\n- The first.\n"


@pytest.mark.parametrize("version", ["0.1.0", "0.0.9", "1", "v9.0.0", "9.0.0-rc1"])
def test_what_is_no_later_version_changes_nothing(checkout: Path, version: str) -> None:
    (checkout / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
    (checkout / CHANGELOG).write_text(LOG)
    with pytest.raises(NotReleased):
        prepare(checkout, version, DAY)
    assert (checkout / CHANGELOG).read_text() == LOG
    assert images(checkout) == {build.version()}


def test_nothing_is_no_release() -> None:
    log = released(LOG, "0.2.0", DAY)
    with pytest.raises(NotReleased, match="nothing"):
        released(log, "0.3.0", DAY)
    with pytest.raises(NotReleased, match="already"):
        released(LOG, "0.1.0", DAY)
    with pytest.raises(NotReleased, match="does not know"):
        notes(log, "0.3.0")

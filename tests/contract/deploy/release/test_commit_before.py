"""What `make test-deployed` upgrades from: the release before, by the history of a repository."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployed.engine import Unable
from tests.deployed.images import commit_before

Git = Callable[..., str]
Commit = Callable[[str], str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    monkeypatch.delenv("UPGRADED_FROM", raising=False)

    def run(*arguments: str) -> str:
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "init.defaultBranch=main"]
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    run("init", "--quiet")
    return run


@pytest.fixture
def commit(git: Git, tmp_path: Path) -> Commit:
    """Changes a file and commits that; returns the commit."""

    def change(name: str) -> str:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{file.read_text() if file.exists() else ''}more\n")
        git("add", name)
        git("commit", "--quiet", "--message", name)
        return git("rev-parse", "HEAD")

    return change


def test_without_a_release_it_is_the_commit_before_the_images_changed(tmp_path: Path, commit: Commit) -> None:
    first = commit("contracts/types.py")
    commit("services/gateway/app.py")
    commit("docs/keys.md")
    commit("services/gateway/README.md")
    assert commit_before(tmp_path) == first


def test_what_is_not_committed_is_an_upgrade_of_the_last_commit(tmp_path: Path, commit: Commit) -> None:
    commit("contracts/types.py")
    last = commit("services/gateway/app.py")
    (tmp_path / "services/gateway/new.py").write_text("new\n")
    assert commit_before(tmp_path) == last


def test_it_is_the_newest_release_by_number(tmp_path: Path, git: Git, commit: Commit) -> None:
    commit("services/gateway/app.py")
    git("tag", "v0.9.0")
    newest = commit("services/gateway/app.py")
    git("tag", "--annotate", "v0.10.0", "--message", "notes")
    commit("services/gateway/app.py")
    git("tag", "v1-try")
    commit("services/gateway/app.py")
    assert commit_before(tmp_path) == newest


def test_a_release_is_an_upgrade_of_the_one_before_it(tmp_path: Path, git: Git, commit: Commit) -> None:
    before = commit("services/gateway/app.py")
    git("tag", "v0.1.0")
    commit("contracts/types.py")
    git("tag", "v0.2.0")
    commit("docs/keys.md")
    assert commit_before(tmp_path) == before
    (tmp_path / "contracts/types.py").write_text("changed\n")
    assert commit_before(tmp_path) == git("rev-parse", "v0.2.0")


def test_releases_of_other_branches_do_not_count(tmp_path: Path, git: Git, commit: Commit) -> None:
    before = commit("services/gateway/app.py")
    git("switch", "--quiet", "--create", "other")
    commit("services/gateway/app.py")
    git("tag", "v9.0.0")
    git("switch", "--quiet", "main")
    commit("contracts/types.py")
    assert commit_before(tmp_path) == before


def test_another_one_may_be_named(tmp_path: Path, git: Git, commit: Commit, monkeypatch: pytest.MonkeyPatch) -> None:
    first = commit("services/gateway/app.py")
    git("tag", "--annotate", "old", "--message", "old")
    commit("services/gateway/app.py")
    commit("services/gateway/app.py")
    monkeypatch.setenv("UPGRADED_FROM", "old")
    assert commit_before(tmp_path) == first


def test_a_history_without_one_is_said(tmp_path: Path, commit: Commit) -> None:
    commit("services/gateway/app.py")
    with pytest.raises(Unable, match="no earlier version is found"):
        commit_before(tmp_path)

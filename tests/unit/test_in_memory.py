"""The folder in memory for a run's files: where it is, and that none is left."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from tests.support import in_memory


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the machine's memory."""
    monkeypatch.setattr(in_memory, "_MEMORY", tmp_path)
    monkeypatch.setattr(in_memory, "_BYTES", 1)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("TMPDIR", raising=False)
    return tmp_path


def test_a_run_has_its_files_there_and_leaves_none(memory: Path) -> None:
    usual = tempfile.gettempdir()
    folder = in_memory.open_folder()
    assert folder is not None
    assert (folder.parent, folder.stat().st_mode & 0o777) == (memory, 0o755)
    made = Path(tempfile.mkdtemp())
    assert made.parent == folder == Path(os.environ["TMPDIR"])
    in_memory.close_folder(folder)
    assert (tempfile.gettempdir(), [*memory.iterdir()]) == (usual, [])


def test_another_place_is_obeyed(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(memory / "elsewhere"))
    assert in_memory.open_folder() is None
    assert os.environ["TMPDIR"] == str(memory / "elsewhere")


def test_where_there_is_no_room_nothing_changes(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "_BYTES", 10**18)
    assert in_memory.open_folder() is None
    assert "TMPDIR" not in os.environ
    in_memory.close_folder(None)


def test_what_a_killed_run_left_goes_and_what_others_have_stays(memory: Path) -> None:
    left, running, strange = (memory / name for name in ("cs-tests-killed_1", "cs-tests-running1", "cs-tests-data"))
    for folder in (left, running, strange):
        (folder / "files").mkdir(parents=True)
    handle = os.open(running, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)  # as another run holds it
    in_memory.close_folder(in_memory.open_folder())
    assert sorted(memory.iterdir()) == [strange, running]
    os.close(handle)
    in_memory.close_folder(in_memory.open_folder())
    assert [*memory.iterdir()] == [strange]

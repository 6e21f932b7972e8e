"""Processes that begin as copies: they do as those that are started anew, and need nobody once they run."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from deploy.processes.forked import ForkedProcess, ForkServerFailed, ForkServers
from deploy.processes.logged import LoggedProcess
from deploy.rabbitmq import free_port
from deploy.services import ROOT, SERVICES
from tests.support.services.processes import environment
from tests.support.services.suite import wait_until

RUNTIME = [sys.executable, "-m", "contracts.runtime.main"]


@pytest.fixture(scope="module")
def servers() -> Iterator[ForkServers]:
    made = ForkServers.of_this_process()
    made.begin()
    yield made
    made.close()
    assert not made.folder.exists()


def options(folder: Path, **environment: str) -> dict[str, Any]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **environment}
    return {"cwd": folder, "env": env, "new_session": True}


def waiting(servers: ForkServers, folder: Path, name: str = "waiting") -> ForkedProcess:
    """A process that waits for a schema that nobody makes."""
    no_broker = "amqp://guest:guest@127.0.0.1:9/"
    settings = environment("templates", no_broker, f"sqlite:///{folder}/none.sqlite", folder)
    log = folder / f"{name}.log"
    process = servers.start([*RUNTIME, "background", "templates"], log, **options(folder, **settings))
    wait_until(lambda: log.exists() and "templates schema" in log.read_text(), what="it waits")
    return process


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: words.strip() for name, _, words in (line.partition(":") for line in lines)}


def parent_of(pid: int) -> int:
    return int(status_of(pid)["PPid"])


def goes_on(pid: int) -> bool:
    """Whether a process runs; nobody may have noted the end of one that has lost its parent."""
    try:
        return not status_of(pid)["State"].startswith("Z")
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "arguments",
    [["contracts.runtime.main"], ["services.gateway"], ["services.templates", "check"], ["services.gateway", "serve"]],
    ids=" ".join,
)
def test_a_copy_says_what_one_started_anew_says(servers: ForkServers, tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", *arguments]
    anew = LoggedProcess(command, tmp_path / "anew.log", **options(tmp_path))
    copy = servers.start(command, tmp_path / "copy.log", **options(tmp_path))
    assert copy.is_copy
    assert (copy.wait(120), (tmp_path / "copy.log").read_text()) == (
        anew.wait(120),
        (tmp_path / "anew.log").read_text(),
    )
    assert (tmp_path / "copy.log").read_text()


def test_how_a_copy_ended_is_known(servers: ForkServers, tmp_path: Path) -> None:
    killed = waiting(servers, tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        killed.wait(0.05)
    assert killed.poll() is None
    assert os.getsid(killed.pid) == killed.pid
    killed.send_signal(signal.SIGKILL)
    assert (killed.wait(60), killed.poll()) == (-signal.SIGKILL, -signal.SIGKILL)
    ended = waiting(servers, tmp_path, "ended")
    ended.terminate()
    assert ended.wait(60) == 0


def test_copies_go_on_when_their_fork_server_is_killed_and_others_are_started_anew(tmp_path: Path) -> None:
    servers = ForkServers.of_this_process()
    copy = waiting(servers, tmp_path)
    server = parent_of(copy.pid)
    assert "deploy.processes.fork_server" in Path(f"/proc/{server}/cmdline").read_text()
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: parent_of(copy.pid) != server, what="it is gone")
    assert copy.poll() is None
    later = servers.start(RUNTIME, tmp_path / "later.log", **options(tmp_path))
    assert (later.is_copy, later.wait(120)) == (False, 2)
    copy.kill()
    assert copy.wait(60) == -signal.SIGKILL
    servers.close()


def test_a_long_tmpdir_keeps_nobody_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``make up`` would else not start there: the address of a socket may have 107 bytes."""
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    servers = ForkServers.of_this_process()
    copy = servers.start(RUNTIME, tmp_path / "log", **options(tmp_path))
    assert (copy.is_copy, copy.wait(120)) == (True, 2)
    servers.close()


def test_why_a_fork_server_does_not_start_is_said(tmp_path: Path) -> None:
    servers = ForkServers(tmp_path, os.getpid(), "deploy.processes.nothing")
    with pytest.raises(
        ForkServerFailed, match=r"fork server of plain did not start\.\n.*No module named deploy.processes.nothing"
    ):
        servers.start(RUNTIME, tmp_path / "log", **options(tmp_path))


def test_a_fork_server_ends_with_whom_it_serves(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from deploy.processes.forked import ForkServers;"
        "made = ForkServers.of_this_process(); process = made.start([sys.executable, '-m', 'contracts.runtime.main'],"
        " Path(sys.argv[1]), env={}, cwd=Path('/'));"
        "status = Path(f'/proc/{made._started[0].pid}'); print(made._started[0].pid, made.folder, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "log"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout
        server, folder = run.stdout.readline().split()
        run.kill()
    wait_until(lambda: not goes_on(int(server)), what="the fork server has ended")
    wait_until(lambda: not Path(folder).exists(), what="its folder is gone")


def test_make_up_is_ready_with_copies_and_leaves_nothing(tmp_path: Path) -> None:
    port = free_port()
    environment = {
        "PORT": str(port),
        "VAR_DIR": str(tmp_path / "var"),
        "PROVIDERS_TO_TRY": "no",
        "TMPDIR": str(tmp_path),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "deploy.suite"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout
        try:
            said = running.stdout.readline()
            assert said.startswith("Countersign is ready after"), said
            assert requests.get(f"http://127.0.0.1:{port}/readyz", timeout=60).status_code == 200
            family = list(_family(running.pid))
            servers = {pid for pid in family if parent_of(pid) == running.pid and "fork_server" in _command(pid)}
            folders = {Path(_command(pid).split()[3]).parent for pid in servers}
            assert all(folder.is_dir() and folder.name.startswith("fork-servers-") for folder in folders), folders
            copies = [pid for pid in family if parent_of(pid) in servers]
            assert len(copies) == len(SERVICES) + 1, [_command(pid) for pid in family]
        finally:
            running.terminate()
        assert running.wait(60) == 0
    wait_until(lambda: not any(goes_on(pid) for pid in family), what="all of them have ended")
    assert [folder for folder in folders if folder.exists()] == []


def _family(pid: int) -> Iterator[int]:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield int(child)
            yield from _family(int(child))


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")

"""podman with a storage of its own: images, pods and networks of a test never meet those of the operator.

Everything lies in one folder outside the checkout (``FOLDER``) and may be deleted whenever nothing runs: the next run makes it
anew. It holds the images of one run and their layers, about 4 GB, not one set per run.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "countersign" / "deployed"
RUN_FOLDER = Path("/run/countersign-deployed")
"""State of what runs now, on a file system that is empty after a restart of the machine."""
PROGRAMS = ("podman", "runc", "debootstrap", "pdfsig", "git", "ip")

_CONTAINERS_CONF = f"""\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
log_driver = "k8s-file"
log_size_max = 50000000
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "none"
tmp_dir = "{RUN_FOLDER}/libpod"
[network]
network_backend = "netavark"
network_config_dir = "{FOLDER}/networks"
"""
_STORAGE_CONF = """\
[storage]
driver = "{driver}"
graphroot = "{folder}/storage-{driver}"
runroot = "{run}/storage"
"""


CANNOT = 69
"""The exit code of a run that could not begin, with what is missing in words (EX_UNAVAILABLE of sysexits.h)."""


class Unable(Exception):
    """Containers cannot run here; the message says what is missing."""


class EngineFailed(Exception):
    """A command of podman failed; the message ends with what it said."""


def prepare() -> None:
    """Write podman's configuration, and run one command.

    Raises ``Unable`` naming what is missing.
    """
    if os.geteuid() != 0:
        raise Unable("containers with addresses of their own are started by root, and this is another user")
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise Unable(f"these programs are missing: {', '.join(missing)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "containers.conf").write_text(_CONTAINERS_CONF)
    driver = "overlay" if _can_overlay() else "vfs"
    (FOLDER / "storage.conf").write_text(_STORAGE_CONF.format(driver=driver, folder=FOLDER, run=RUN_FOLDER))
    try:
        podman("images", "--quiet")
    except EngineFailed as failed:
        raise Unable(f"podman does not work here: {failed}") from failed


def _can_overlay() -> bool:
    """Whether a file system of layers can be mounted over the cache's: not where that is such a file system itself."""
    tried = FOLDER / "overlay-tried"
    below, above, work, mounted = (tried / name for name in ("below", "above", "work", "mounted"))
    for folder in (below, above, work, mounted):
        folder.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={below},upperdir={above},workdir={work}"
    done = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, mounted], capture_output=True, check=False
    )
    if done.returncode == 0:
        subprocess.run(["umount", mounted], check=True)
    shutil.rmtree(tried)
    return done.returncode == 0


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "CONTAINERS_CONF": str(FOLDER / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(FOLDER / "storage.conf"),
    }


def run(*command: str | Path, within: float = 120, **more: Any) -> str:
    """What the command printed. Raises ``EngineFailed`` with the end of its words."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
            **more,
        )
    except subprocess.TimeoutExpired as late:
        raise EngineFailed(f"{command[0]} {command[1]} took more than {within:.0f} s") from late
    if done.returncode != 0:
        said = (done.stdout[-3000:] + done.stderr[-3000:]).strip()
        raise EngineFailed(f"{' '.join(str(part) for part in command)}: exit code {done.returncode}\n{said}")
    return str(done.stdout)


def podman(*arguments: str | Path, **more: Any) -> str:
    return run("podman", *arguments, **more)


def inspect(container: str, **more: Any) -> dict[str, Any]:
    (found,) = json.loads(podman("container", "inspect", container, **more))
    return dict(found)

#!/usr/bin/env python3
"""The project on a bare system of another release, as a newcomer has it: `make demo` in a chroot. Only the standard library; as root.

    python3 tests/deployed/systems.py trixie [command] [--again] [--architecture arm64] --mirror URL

Debootstrap makes a minimal system (Python, make, git and nothing of ours) from the packages at the mirror, the last commit is
cloned into it, and the command, by default `make demo`, is run there. At the end a row for the table in docs/install.md is printed. The command has mounts and process
numbers of its own: nothing that it starts is left, however it ends. Systems are kept in ``SYSTEMS_DIR``, by default beside the images of
`make test-deployed`, some 3 GB each; delete the folder to begin anew. It is no test of `make test-deployed`: one takes ten minutes.
"""

import argparse
import datetime
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
FOLDER = Path(os.environ.get("SYSTEMS_DIR") or CACHE / "countersign" / "systems")
PACKAGES = "ca-certificates,git,make,python3,python3-venv,python3-pip,sudo,procps"
DEBIAN, UBUNTU = "debian", "ubuntu"


@dataclass(frozen=True)
class System:
    """A release that debootstrap can make. ``script`` is how; the debootstrap of Debian 12 does not know later releases by name."""

    name: str
    of: str
    components: str = "main"
    script: str = "sid"


SYSTEMS = {
    "bookworm": System("Debian 12", DEBIAN),
    "trixie": System("Debian 13", DEBIAN),
    "forky": System("Debian testing", DEBIAN),
    "jammy": System("Ubuntu 22.04", UBUNTU, "main,universe", "gutsy"),
    "noble": System("Ubuntu 24.04", UBUNTU, "main,universe", "gutsy"),
    "resolute": System("Ubuntu 26.04", UBUNTU, "main,universe", "gutsy"),
}

_INSIDE = """
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    chroot "$1" sh -c "cd /root/project && $2"
"""
"""What a shell runs in namespaces of its own: $1 is the system's folder, $2 the command."""


def main() -> int:
    """Run the command in the system; the exit code is the command's."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("release", choices=SYSTEMS)
    arguments.add_argument("command", nargs="?", default="make demo")
    arguments.add_argument(
        "--mirror", help="where the release's packages are; not needed for a system that is there already"
    )
    arguments.add_argument("--architecture", help="another than this machine's, as Debian names it")
    arguments.add_argument("--again", action="store_true", help="with the Python packages that the last run installed")
    chosen = arguments.parse_args()
    if os.geteuid() != 0:
        print("Only root can make a system and change into it.", file=sys.stderr)
        return 1
    folder = provide(chosen.release, chosen.architecture, chosen.mirror)
    clone(folder, again=chosen.again)
    began = time.monotonic()
    script = ["sh", "-ec", _INSIDE, "sh", str(folder), chosen.command]
    code = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", *script], check=False).returncode
    seconds = time.monotonic() - began
    python = _said(folder, "python3", "--version").removeprefix("Python ")
    system = " ".join([SYSTEMS[chosen.release].name, *filter(None, [chosen.architecture])])
    today = datetime.datetime.now(datetime.UTC).date()
    outcome = "works" if code == 0 else f"ends with {code}"
    print(f"| {system} ({chosen.release}) | {python} | `{chosen.command}` | {outcome}, {seconds:.0f} s | {today} |")
    return code


def provide(release: str, architecture: str | None, mirror: str | None) -> Path:
    """The folder of the system, made where it is not there. What this machine needs to reach its packages is copied into it."""
    system, folder = SYSTEMS[release], FOLDER / "-".join([release, *filter(None, [architecture])])
    if not (folder / "made").exists():
        if mirror is None:
            raise SystemExit(f"--mirror is needed: where the packages of {system.name} are")
        shutil.rmtree(folder, ignore_errors=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        print(f"Making {system.name} in {folder}", file=sys.stderr, flush=True)
        options = [*_keyring(system), *([f"--arch={architecture}"] if architecture else [])]
        subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", f"--components={system.components}", *options,
             release, folder, mirror, f"/usr/share/debootstrap/scripts/{system.script}"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        if system.of == UBUNTU:  # what every installation of it has
            words = system.components.replace(",", " ")
            lines = [f"deb {mirror} {pocket} {words}\n" for pocket in (release, f"{release}-updates")]
            (folder / "etc/apt/sources.list").write_text("".join(lines))
        # Lists of a release that still changes are out of date after a week, and a mirror may keep them as they were.
        (folder / "etc/apt/apt.conf.d/any-age").write_text('Acquire::Check-Valid-Until "false";\n')
        (folder / "etc/dpkg/dpkg.cfg.d/quick").write_text("force-unsafe-io\n")  # it need not outlive a power cut
        (folder / "made").touch()
    for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt", "/root/.npmrc"):
        if Path(name).exists():
            shutil.copy(name, folder / name.lstrip("/"))
    return folder


def _keyring(system: System) -> list[str]:
    """Whose signature is demanded of the packages' list. Without Ubuntu's key (package ubuntu-keyring of Debian 13) it is not checked."""
    file = Path("/usr/share/keyrings", f"{system.of}-archive-keyring.gpg")
    if file.exists():
        return [f"--keyring={file}"]
    print(f"{file} is missing: the system's packages are taken unchecked", file=sys.stderr, flush=True)
    return ["--no-check-gpg"]


def clone(folder: Path, *, again: bool) -> None:
    """Put the last commit into the system, and nothing that an earlier run made but, with ``again``, its Python packages."""
    project, kept = folder / "root" / "project", folder / "root" / "kept"
    if again and (project / ".venv").exists():
        (project / ".venv").rename(kept)
    shutil.rmtree(project, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, project], check=True)
    if kept.exists():
        kept.rename(project / ".venv")


def _said(folder: Path, *command: str) -> str:
    return subprocess.run(["chroot", folder, *command], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

"""A private PostgreSQL cluster for the tests: own folder, own port, made anew, gone afterwards."""

import itertools
import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Self

import psycopg
import psycopg.sql

from deploy.rabbitmq import free_port
from deploy.services import ROOT, SERVICES


def found_binaries(setting: str | None) -> Path:
    """The folder of the server's programs: the setting's, else that of the latest server of Debian's packages. Raises ValueError
    when the setting names a folder without a server: another server would be tested than was meant."""
    if not setting:
        return max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql/15/bin"))
    folder = Path(setting).resolve()
    missing = [program for program in ("initdb", "pg_ctl", "postgres", "pg_dump") if not (folder / program).exists()]
    if missing:
        raise ValueError(f"POSTGRES_BINARIES is {setting}, and there is no {missing[0]}")
    return folder


BINARIES = found_binaries(os.environ.get("POSTGRES_BINARIES"))

CREATE_DATABASES = ROOT / "deploy/kubernetes/components/broker-and-database/create-databases.sh"


class PrivatePostgres:
    """``new_database()`` gives the URL of an empty database; ``kill`` and ``start`` play a crash."""

    def __init__(self, folder: Path, *, shared_buffers: str = "64MB", more: str = "") -> None:
        """``more`` are further options of the server; they win."""
        self.folder = folder
        self.more = more
        self.shared_buffers = shared_buffers
        self.port = free_port()
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        if not (self.folder / "data").exists():
            self._make()
        options = (
            f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=300"
            # A killed server loses nothing without fsync, only a killed machine does; each test would wait for the disk.
            f" -c shared_buffers={self.shared_buffers} -c log_min_messages=fatal -c fsync=off"
            f" {self.more}"
        )
        self._run("pg_ctl", "-w", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-w", "-D", f"{self.folder}/data", "-m", "immediate", "stop")

    def promote(self) -> None:
        """Of a standby (``standby.signal`` in its folder) make a server that takes changes."""
        self._run("pg_ctl", "-w", "-D", f"{self.folder}/data", "promote")

    def new_database(self, name: str | None = None, *, template: str = "template1") -> str:
        """``template``: the database that it is a copy of, to which nobody is connected."""
        name = name or f"test_{next(self._numbers)}"
        with psycopg.connect(self._maintenance(), autocommit=True) as connection:
            names = map(psycopg.sql.Identifier, (name, template))
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{name}"

    def drop(self, url: str) -> None:
        """Drop a database of ``new_database``, whoever is connected still: a thousand of them take 9 GB."""
        with psycopg.connect(self._maintenance(), autocommit=True) as connection:
            name = psycopg.sql.Identifier(url.rpartition("/")[2])
            connection.execute(psycopg.sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    def _maintenance(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def service_databases(self) -> dict[str, str]:
        """By service the URL of its database, with the role that may connect to this one only, as the deployments make them."""
        self.create_databases()
        return {service: f"postgresql+psycopg://{service}@127.0.0.1:{self.port}/{service}" for service in SERVICES}

    def create_databases(self, **passwords: str) -> None:
        """Run the deployments' script. A role's password is its service's name, unless ``passwords`` says another."""
        chosen = {f"{service.upper()}_POSTGRES_PASSWORD": passwords.get(service, service) for service in SERVICES}
        where = {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "POSTGRES_USER": "postgres"}
        done = subprocess.run(
            [CREATE_DATABASES], env={**os.environ, **chosen, **where}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{CREATE_DATABASES.name} failed: {done.stderr}")

    def _make(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root; its package made a user for it.
            shutil.chown(self.folder, "postgres")
            for parent in (*self.folder.parents, *BINARIES.parents):
                if parent.stat().st_uid == 0 and parent != Path("/") and not parent.stat().st_mode & 0o001:
                    parent.chmod(parent.stat().st_mode | 0o001)
        self._run("initdb", "-D", f"{self.folder}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")

    def _run(self, program: str, *arguments: str) -> None:
        user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        done = subprocess.run(
            [str(BINARIES / program), *arguments],
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program != "pg_ctl" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}")

"""``countersign move (SERVICE... | --all) --to URL``: take databases from SQLite to PostgreSQL, or back, with the services
stopped.

The sources are the services' ``<SERVICE>_DATABASE_URL``, or those of the suite that ``up`` keeps in VAR_DIR; they are not
changed. URL is where to: ``{service}`` in it stands for each service's name, as in ``postgresql://{service}@host/{service}``.
Without it, a URL without a database gets one of the service's name, and that of a folder of SQLite a file. The targets must be
empty. All sources are held and looked through before anything is written. It may be interrupted at any time, and goes on when
it is run again. Passwords may come from ``~/.pgpass`` or PGPASSWORD, so that no list of processes shows them.
"""

import argparse
import contextlib
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import URL

from contracts.errors import CannotStart, ServiceError
from contracts.runtime.data.database import normalised
from contracts.runtime.settings import SecretFileFaults, secret_setting
from deploy.manifest import Unsuitable
from deploy.moving.databases import Target
from deploy.moving.move import Different, Moved, examined, is_moved, move
from deploy.services import SERVICES

_NAME = "{service}"
_SHOWN = 16
"""Characters of a digest."""


def main(arguments: list[str] | None = None, *, program: str = "python -m deploy.moving.program") -> int:
    """Move what the command line names: 0 when everything is there and equal, else 1."""
    parser = argparse.ArgumentParser(
        prog=program,
        usage=f"{program} (SERVICE... | --all) --to URL",
        description=(__doc__ or "").partition("\n\n")[2],
    )
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"of {', '.join(SERVICES)}")
    parser.add_argument("--all", action="store_true", help="the databases of all services")
    parser.add_argument("--to", required=True, metavar="URL", help="postgresql://user@host/database, sqlite:////path")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.services if name not in SERVICES]:
        parser.error(f"{', '.join(unknown)} is no service: there are {', '.join(SERVICES)}")
    if chosen.all == bool(chosen.services):
        parser.error("name services, or --all")
    services = list(SERVICES) if chosen.all else list(dict.fromkeys(chosen.services))
    try:
        sources = sources_of(services)
        targets = {service: target_of(chosen.to, service) for service in services}
        _must_be_apart(sources, targets)
        move_all(sources, targets)
    except Unsuitable as reason:
        print(f"Not moved: {reason}", file=sys.stderr)
    except (Different, ServiceError, CannotStart) as reason:
        words = reason.message if isinstance(reason, ServiceError) else str(reason)
        print(f"Not moved, and the target is not to be used: {words}", file=sys.stderr)
    except (OSError, ValueError, sqlite3.Error, sa.exc.SQLAlchemyError, psycopg.Error) as error:
        words = str(getattr(error, "orig", None) or error).strip()
        print(f"Cut off, do it again: {words}", file=sys.stderr)
    else:
        return 0
    return 1


def sources_of(services: Sequence[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return where the databases of these services are. Raises Unsuitable when a setting is missing."""
    names = {service: f"{service.upper()}_DATABASE_URL" for service in services}
    try:
        url_by_service = {service: secret_setting(name, environment) or "" for service, name in names.items()}
    except SecretFileFaults as fault:
        raise Unsuitable(str(fault)) from fault
    if missing := [names[service] for service, url in url_by_service.items() if not url]:
        raise Unsuitable(f"not set: {', '.join(missing)}")
    return url_by_service


def target_of(url: str, service: str) -> str:
    """Return where a service's database goes. Raises Unsuitable for what is no URL of a database."""
    try:
        parsed = normalised(url.replace(_NAME, service))
    except (ValueError, sa.exc.ArgumentError):
        raise Unsuitable("--to is no URL of a database, such as postgresql://{service}@host/{service}") from None
    if _NAME not in url:
        if parsed.get_backend_name() == "sqlite" and Path(parsed.database or "").is_dir():
            parsed = parsed.set(database=str(Path(parsed.database or "") / f"{service}.sqlite"))
        elif not parsed.database:
            parsed = parsed.set(database=service)
    return parsed.render_as_string(hide_password=False)


def move_all(sources: Mapping[str, str], targets: Mapping[str, str]) -> None:
    """Move these databases, and say what came of it. Raises what ``move`` raises, naming the service."""
    with contextlib.ExitStack() as stack:
        source_by_service, target_by_service = {}, {}
        for service, url in sources.items():
            with _naming_service(service):
                source_by_service[service] = stack.enter_context(examined(service, url))
                target_by_service[service] = stack.enter_context(Target(targets[service]))
                is_moved(source_by_service[service], target_by_service[service])
        for service, source in source_by_service.items():

            def say(line: str, service: str = service) -> None:
                print(f"{service}: {line}", file=sys.stderr, flush=True)

            with _naming_service(service):
                _tell(move(source, target_by_service[service], say=say))
    print("Everything is there, and equal. Set these, with their passwords, then start the services:")
    for service, target in targets.items():
        parsed = normalised(target)
        shown = parsed.set(drivername=parsed.get_backend_name()).render_as_string()
        print(f"  {service.upper()}_DATABASE_URL={shown}")
    print(
        "The databases of before are as they were. Delete them once you have seen the services at work: what is erased"
    )
    print("from now on stays in them.")


@contextlib.contextmanager
def _naming_service(service: str) -> Iterator[None]:
    try:
        yield
    except (Unsuitable, Different, CannotStart) as error:
        raise type(error)(f"{service}: {error}") from error


def _tell(moved: Moved) -> None:
    """A table: how many rows each table has on both sides, and the digest that is the same on both."""
    words = "was moved before" if moved.again else f"{moved.kinds[0]} -> {moved.kinds[1]}"
    print(f"{moved.service}: {words}, {sum(count.rows for count in moved.counted.values())} rows")
    width = max(map(len, moved.counted))
    for name, count in sorted(moved.counted.items()):
        print(f"  {name:{width}}  {count.rows:>10}  {count.sha256[:_SHOWN]}")
    sys.stdout.flush()


def _must_be_apart(sources: Mapping[str, str], targets: Mapping[str, str]) -> None:
    """No database is moved onto itself, nor two into one."""
    places = [_place(url) for url in (*sources.values(), *targets.values())]
    if len({*places}) < len(places):
        raise Unsuitable("each database needs a place of its own: put {service} into the URL")


def _place(url: str) -> str:
    parsed: URL = normalised(url)
    if parsed.get_backend_name() == "sqlite":
        return str(Path(parsed.database or "").resolve())
    return f"{parsed.host}:{parsed.port or 5432}/{parsed.database} {parsed.query.get('options', '')}"


if __name__ == "__main__":
    sys.exit(main())

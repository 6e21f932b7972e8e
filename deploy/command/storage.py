"""``countersign storage``: how many files there are, and how large they are: those that records name, by folder and age, and
all that are in the file store, by age."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rpc.operating import AGES, StoredFiles
from contracts.runtime import process
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.files import stored_files
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from contracts.runtime.operations import checking
from contracts.runtime.settings import ServiceSettings
from services.gateway.accounts import queries
from services.gateway.settings import Settings
from services.submissions.reading import stored_files as of_submissions
from services.templates import stored_files as of_templates

_COUNT = {"templates": of_templates.count, "submissions": of_submissions.count}
_AGES = dict(zip(AGES, ("up to 30 days", "up to a year", "older"), strict=True))
_STORE = "file store"


def look(*, as_json: bool) -> int:
    """Count and print. 0: all was counted; 3: not all could be. As JSON it is one object: ``account``, ``services`` with a list
    of StoredFiles each, ``store`` with one whose folders are those of the file store, and ``unknown`` with what could not be
    counted, and why."""
    observe.setup("storage", "CRITICAL")
    unknown: dict[str, str] = {}
    files_by_service = {name: _of_service(name, unknown) for name in _COUNT}
    store, account = _of_store(unknown), _account(unknown)
    if as_json:
        services = {name: [part.model_dump() for part in parts] for name, parts in files_by_service.items()}
        stored = [part.model_dump() for part in store]
        print(json.dumps({"account": account, "services": services, "store": stored, "unknown": unknown}, indent=2))
    else:
        print(f"Account: {account or 'unknown'}")
        for name, parts in {**files_by_service, _STORE: store}.items():
            if name not in unknown:
                for line in _lines(name, parts):
                    print(line)
        for name, reason in unknown.items():
            print(f"{name}: could not be counted: {reason}")
    return 3 if unknown else 0


def _of_service(name: str, unknown: dict[str, str]) -> list[StoredFiles]:
    return _ask_database(name, unknown, lambda database, _settings: _COUNT[name](database, now())) or []


def _account(unknown: dict[str, str]) -> str | None:
    def name_of(database: Database, settings: Any) -> str:
        assert isinstance(settings, Settings)
        return str(database.read(queries.account, settings.account_defaults()).name)

    account_name = _ask_database("gateway", unknown, name_of)
    return None if account_name is None else str(account_name)


def _ask_database(name: str, unknown: dict[str, str], ask: Any) -> Any:
    """Return what ``ask`` finds in the database of a service; None, and it is in ``unknown`` why, when that cannot be asked."""
    settings = process.settings_or_faults(name)
    if not isinstance(settings, ServiceSettings):
        unknown[name] = f"its settings are not complete: {'; '.join(settings)}"
        return None
    try:
        process.check_schema(name, settings.database_url)
        database = Database(settings.database_url, pool_size=1)
        try:
            return ask(database, settings)
        finally:
            database.dispose()
    except (ServiceError, sa.exc.SQLAlchemyError) as error:
        unknown[name] = checking.reason_of(error)
        return None


def _of_store(unknown: dict[str, str]) -> list[StoredFiles]:
    settings, moment = process.settings_or_faults("templates"), now()
    if not isinstance(settings, ServiceSettings):
        unknown[_STORE] = f"its settings are not complete: {'; '.join(settings)}"
        return []
    try:
        files = (
            (file.key.partition("/")[0], file.changed_at, [{"key": file.key, "sha256": "", "size": file.size}])
            for file in BlobStore.from_url(settings.blob_url).everything()
        )
        return stored_files.counted(files, moment)
    except (ServiceError, OSError) as error:
        unknown[_STORE] = checking.reason_of(error)
        return []


def _lines(name: str, parts: Sequence[StoredFiles]) -> Iterator[str]:
    yield f"{name}:"
    by_folder: dict[str | None, dict[str, StoredFiles]] = defaultdict(dict)
    for part in parts:
        by_folder[part.folder][part.age] = part
    if not parts:
        yield "  no files"
    for folder, by_age in by_folder.items():
        counts = ", ".join(
            f"{_AGES[age]} {by_age[age].files} ({_size(by_age[age].bytes)})" for age in AGES if age in by_age
        )
        yield f"  {'(no folder)' if folder is None else folder}: {counts}"
    if len(parts) > 1:
        yield f"  in all: {sum(part.files for part in parts)} ({_size(sum(part.bytes for part in parts))})"


def _size(count: int) -> str:
    return f"{count / 1_000_000:,.1f} MB"

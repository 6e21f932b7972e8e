"""``countersign keys``: a new API key for an admin who has lost theirs, a test key, or one that opens ``/ops``, from the
database alone."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from contracts.errors import ServiceError
from contracts.runtime import process
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from deploy.suite import ADMIN_KEY_FILE, write_secret
from services.gateway.accounts import commands, operators, queries
from services.gateway.accounts.api_keys import keys
from services.gateway.rights import Rights
from services.gateway.settings import Settings


def list_admins() -> int:
    """Print the addresses of the active admins; 0, or 1 where the database cannot be read."""
    try:
        with _opened() as (_, database):
            for email in database.read(queries.admins):
                print(email)
    except ServiceError as error:
        return _not_done(error.message)
    return 0


def renew(email: str) -> int:
    """Give this admin another first key and print it; the one before is dead at once, their other keys stay. 0 when it was
    done, else 1."""
    try:
        with _opened() as (settings, database):
            user = database.read(queries.admin_with, email)
            ring = keys.KeyRing(settings.key_encryption_secret.get_secret_value())
            before = _first_key(database, user.user_id)
            key = keys.new_api_key()
            database.write(commands.rotate_api_key, user.user_id, ring.seal(key), now())
            _keep(settings.var_dir, ring, before, key)
    except ServiceError as error:
        return _not_done(error.message)
    print(key)
    return 0


def make_test_key(email: str) -> int:
    """Give this admin a test key with all scopes beside their other keys, and print it. 0 when it was done, else 1."""
    try:
        with _opened() as (settings, database):
            user = database.read(queries.admin_with, email)
            ring = keys.KeyRing(settings.key_encryption_secret.get_secret_value())
            key = keys.new_api_key()
            database.write(commands.create_key, user.user_id, ring.hash(key), "Test key", Rights(test=True), now())
    except ServiceError as error:
        return _not_done(error.message)
    print(key)
    return 0


def give_operator(email: str, name: str, days: int) -> int:
    """Give this admin a key that opens the page ``/ops``, for so many days, and print it; their other keys stay. 0 when it was
    done, else 1."""
    try:
        with _opened() as (settings, database):
            ring = keys.KeyRing(settings.key_encryption_secret.get_secret_value())
            key, moment = keys.new_api_key(), now()
            ends = moment + timedelta(days=days)
            operator_key = database.write(operators.make_key, email, ring.hash(key), name, ends, moment)
            page = f"{settings.base_url.rstrip('/')}/ops/sign-in"
    except ServiceError as error:
        return _not_done(error.message)
    print(f"Key {operator_key['id']}, good until {operator_key['expires_at']}, for {page}:", file=sys.stderr)
    print(key)
    return 0


@contextmanager
def _opened() -> Iterator[tuple[Settings, Database]]:
    settings = process.settings_of("gateway")
    assert isinstance(settings, Settings)
    observe.setup("gateway", "ERROR")
    process.check_schema("gateway", settings.database_url)
    database = Database(settings.database_url, pool_size=1)
    try:
        yield settings, database
    finally:
        database.dispose()


def _first_key(database: Database, user_id: int) -> str | None:
    """The digest of the user's first key; None where it was deleted."""
    try:
        return database.read(queries.sealed_key, user_id)[1].hash
    except ServiceError as error:
        if error.code != "not_found":
            raise
        return None


def _keep(folder: Path | None, ring: keys.KeyRing, before: str | None, key: str) -> None:
    """``up`` keeps the first admin's key in a file, from which programs read it: there, too, it is the new one from now on."""
    path = folder / ADMIN_KEY_FILE if folder is not None else None
    if path is not None and path.exists() and before in ring.hashes(path.read_text().strip()):
        write_secret(path, key)
        print(f"It is in {path} as well.", file=sys.stderr)


def _not_done(reason: str) -> int:
    print(f"No key was made: {reason}", file=sys.stderr)
    return 1

"""Pictures of the account that were replaced or cleared: kept while a submission shows them, then removed, whoever died when."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Account
from services.gateway.accounts import commands
from services.gateway.accounts.account_pictures import PREFIX, YOUNG, Sweep
from services.submissions.commands import branding_pictures
from tests.support.material.submissions import Desk
from tests.support.services.migrated import migrated


class Store:
    """A folder of files, each as old as a test wants it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs = BlobStore.from_url(f"file://{folder}")

    def put(self, *, age: timedelta = 2 * YOUNG) -> BlobRef:
        made = self.blobs.put(b"a picture", "image/png", PREFIX)
        self.make_older(made.key, age)
        return made

    def make_older(self, key: str, age: timedelta) -> None:
        at = (now() - age).timestamp()
        os.utime(self.folder / key, (at, at))

    def keys(self) -> set[str]:
        return {f"{PREFIX}{one.name}" for one in (self.folder / PREFIX).iterdir()}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_what_nothing_refers_to_in_two_sweeps_goes(database_url: str, store: Store) -> None:
    migrated("gateway", database_url)
    database = Database(database_url)
    shown, current, stamp, old, young = (store.put(), store.put(), store.put(), store.put(), store.put(age=YOUNG / 2))
    store.folder.joinpath(PREFIX, ".half.written").write_bytes(b"a pic")
    store.make_older(f"{PREFIX}.half.written", 2 * YOUNG)

    def use(**pictures: BlobRef | None) -> None:
        changes = {name: one and one.model_dump(mode="json") for name, one in pictures.items()}
        database.write(commands.change_account, Account(), changes, now())

    use(logo=current, stamp=stamp)
    used, asked = {shown.key}, []

    def in_use(keys: list[str]) -> list[str]:
        asked.extend(keys)
        return [key for key in keys if key in used]

    sweep = Sweep(database, store.blobs, in_use)
    sweep()
    assert len(store.keys()) == 6, "a request under the old settings may be on its way"
    sweep()
    assert store.keys() == {shown.key, current.key, stamp.key, young.key}
    assert old.key in asked
    assert not {current.key, stamp.key, young.key} & set(asked)

    # Replaced and cleared; the submission that showed the other one is erased; the young one has become old.
    use(logo=store.put(age=timedelta()), stamp=None)
    used.clear()
    store.make_older(young.key, 2 * YOUNG)
    sweep()
    used.add(stamp.key)  # such a request has come
    sweep()
    assert store.keys() & {shown.key, current.key, stamp.key, young.key} == {stamp.key}
    used.clear()
    for _ in range(3):
        sweep()
    assert len(store.keys()) == 1


def test_without_an_answer_nothing_goes(database_url: str, store: Store) -> None:
    migrated("gateway", database_url)
    old = store.put()

    def away(_keys: list[str]) -> list[str]:
        raise ServiceError("unavailable", "nobody serves it")

    sweep = Sweep(Database(database_url), store.blobs, away)
    for _ in range(3):
        with pytest.raises(ServiceError):
            sweep()
    assert store.keys() == {old.key}


def test_a_submission_refers_to_the_pictures_that_it_was_made_with(database_url: str) -> None:
    desk = Desk(database_url)
    logo, stamp = (
        BlobRef(key=f"{PREFIX}{name}", sha256="a" * 64, size=1, media_type="image/png") for name in ("logo", "stamp")
    )
    made = [
        desk.create(account=Account(logo=logo, stamp=stamp)),
        desk.create(account=Account(logo=logo)),
        desk.create(),
    ]

    def in_use() -> list[str]:
        return desk.database.read(branding_pictures.in_use, [stamp.key, logo.key, f"{PREFIX}other"])

    assert in_use() == [stamp.key, logo.key]
    desk.remove(made[0].id, permanently=True)
    assert in_use() == [logo.key]
    desk.remove(made[1].id)
    assert in_use() == [logo.key], "an archived one can be restored"
    desk.remove(made[1].id, permanently=True)
    assert in_use() == []
    desk.database.dispose()

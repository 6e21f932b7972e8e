"""Loops of the background process: the outbox relay, which every service has from the runtime, and files of wiped tests."""

from datetime import timedelta

from contracts.runtime.data.background import DueWork, Every
from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.data.database import Database
from services.templates.commands import test_mode
from services.templates.settings import Settings

FILES_DELETED_EVERY = timedelta(seconds=10)


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    def delete_files() -> bool:
        return test_mode.delete_files(database, blobs)

    return [Every("files of test mode", FILES_DELETED_EVERY, delete_files)]

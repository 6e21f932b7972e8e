"""Loops of the background process: it counts the files of templates once a day, and deletes those of wiped test templates. The
outbox relay every service has from the runtime."""

from datetime import timedelta

from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork, Every
from contracts.runtime.data.files import stored_files
from contracts.runtime.data.files.blobstore import BlobStore
from services.templates import stored_files as templates_files
from services.templates.commands import test_mode
from services.templates.models import StorageReportRow
from services.templates.settings import Settings

FILES_DELETED_EVERY = timedelta(seconds=10)


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    def delete_files() -> bool:
        return test_mode.delete_files(database, blobs)

    return [
        Every("files of test mode", FILES_DELETED_EVERY, delete_files),
        Every(
            "count files",
            stored_files.LOOKED_EVERY,
            stored_files.kept_counted(database, StorageReportRow, templates_files.count),
        ),
    ]

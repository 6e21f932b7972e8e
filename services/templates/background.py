"""Loops of the background process: the outbox relay is all there is, and every service has it from the runtime."""

from contracts.runtime.data.background import DueWork, Every
from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.data.database import Database
from services.templates.settings import Settings


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    return []

"""What the gateway's background process does besides the runtime's own loops: nothing yet."""

from contracts.runtime.background import DueWork, Every
from contracts.runtime.blobstore import BlobStore
from contracts.runtime.database import Database
from services.gateway.settings import Settings


def loops(settings: Settings, database: Database, blobs: BlobStore) -> list[DueWork | Every]:
    return []

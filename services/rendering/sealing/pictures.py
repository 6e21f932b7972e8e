"""The files that are drawn into documents."""

from contracts.rpc.rendering import FillRequest
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering.rules import domain


def drawn_pictures(blobs: BlobStore, request: FillRequest) -> list[bytes]:
    """The content of each attachment whose picture is drawn, in the request's order; empty for the others, of which only names
    are."""
    drawn = {uuid for value in request.values for uuid in domain.pictures_of(value)}
    return [blobs.get(attachment.file) if attachment.uuid in drawn else b"" for attachment in request.attachments]

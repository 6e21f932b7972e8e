"""A file, as it travels on the bus: never its bytes (10 MB in a message stall every neighbour for half a second)."""

from pydantic import BaseModel, ConfigDict

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
INCOMING = "incoming/"
"""The prefix of files on their way: uploads, and what is made of them before anybody has decided to keep them. Whoever keeps
one takes it over under a key of their own (``BlobStore.adopt``); what is left here is removed after a day. So nothing that a
record names may be here when its transaction commits."""


class BlobRef(BaseModel):
    """An immutable file in the blob store.

    ``key`` is its place in the store, ``sha256`` lower-case hex of its bytes, ``size`` in bytes.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    sha256: str
    size: int
    media_type: str

"""A file, as it travels on the bus: never its bytes (10 MB in a message stall every neighbour for half a second)."""

from pydantic import BaseModel, ConfigDict


class BlobRef(BaseModel):
    """An immutable file in the blob store.

    ``key`` is its place in the store, ``sha256`` lower-case hex of its bytes, ``size`` in bytes.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    sha256: str
    size: int
    media_type: str

"""A recipient's logo in their mails: it comes with the mail, so that nobody learns when it is read (specification 4.9)."""

import base64
import re
from typing import Any

from contracts.blobs import BlobRef
from contracts.runtime.data.blobstore import BlobMissing, BlobStore

_SOURCE = 'src="cid:logo"'
_WHOLE = re.compile(r"<!--logo-->.*?<!--/logo-->", re.DOTALL)


def data(blobs: BlobStore, logo: dict[str, Any] | None) -> bytes | None:
    """The picture; None when there is none, or when it was replaced before the mail left."""
    if logo is None:
        return None
    try:
        return blobs.get(BlobRef.model_validate(logo))
    except BlobMissing:
        return None


def without(html: str) -> str:
    """The mail as it is without the logo."""
    return _WHOLE.sub("", html)


def within(html: str, logo: bytes | None) -> str:
    """The mail as one document, for the local mail page."""
    if logo is None:
        return without(html)
    return html.replace(_SOURCE, f'src="data:image/png;base64,{base64.b64encode(logo).decode()}"')

"""The pictures in a mail: a recipient's logo, and the first page of what they are asked to sign. They come with the mail, so
that nobody learns when it is read (specification 4.9). A mail whose picture is gone leaves without it."""

import base64
import re
from collections.abc import Mapping
from typing import Any

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.runtime.data.files.blobstore import BlobDamaged, BlobMissing, BlobStore
from contracts.runtime.monitoring import observe

log = observe.logger(__name__)

LOGO, FIRST_PAGE = "logo", "first_page"
"""What the HTML calls them: ``src="cid:logo"``, between ``<!--logo-->`` and ``<!--/logo-->``, which go with the picture."""


def data(blobs: BlobStore, pictures: Mapping[str, dict[str, Any] | None]) -> dict[str, bytes]:
    """The PNGs of those that are there, by name.

    A logo that was replaced before the mail left is not; of the first page nothing is worth a mail that waits, so that it is
    left out also when the file store does not answer. Raises ServiceError("unavailable") when the logo's does not.
    """
    found = {}
    for name, picture in pictures.items():
        if picture is None:
            continue
        try:
            found[name] = blobs.get(BlobRef.model_validate(picture))
        except BlobMissing:
            log.info("mail.without_picture", picture=name, reason="it is gone")
        except (ServiceError, BlobDamaged) as error:
            if name == LOGO:
                raise
            log.warning("mail.without_picture", picture=name, reason=str(error))
    return found


def shown(html: str, pictures: Mapping[str, bytes]) -> str:
    """The HTML without what shows pictures that are not among these."""
    for name in (LOGO, FIRST_PAGE):
        if name not in pictures:
            html = re.sub(f"<!--{name}-->.*?<!--/{name}-->", "", html, flags=re.DOTALL)
    return html


def within(html: str, pictures: Mapping[str, bytes]) -> str:
    """The mail as one document, for the local mail page."""
    html = shown(html, pictures)
    for name, picture in pictures.items():
        html = html.replace(f'src="cid:{name}"', f'src="data:image/png;base64,{base64.b64encode(picture).decode()}"')
    return html

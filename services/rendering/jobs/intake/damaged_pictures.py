"""Pictures in a PDF that nobody can decode. Readers leave them blank, each with an error of its own; here they become what
they are: nothing, drawn without an error."""

import pikepdf
from pikepdf import Array, Name

from services.rendering.jobs.pdf.values import items_of

_JPEG = ("/DCTDecode", "/DCT")
_START_OF_JPEG = b"\xff\xd8"


def damaged_pictures(pdf: pikepdf.Pdf) -> list[pikepdf.Stream]:
    """JPEG pictures in whose data no JPEG begins; masks of other pictures are not among them."""
    masks, damaged = set(), []
    for item in pdf.objects:
        if not isinstance(item, pikepdf.Stream) or item.get("/Subtype") != "/Image":
            continue
        if isinstance(item.get("/SMask"), pikepdf.Stream):
            masks.add(item.SMask.objgen)
        filters = items_of(item.get("/Filter")) or [item.get("/Filter")]
        if len(filters) == 1 and filters[0] in _JPEG and _START_OF_JPEG not in item.read_raw_bytes():
            damaged.append(item)
    return [item for item in damaged if item.objgen not in masks]


def blank(pictures: list[pikepdf.Stream]) -> None:
    """Each becomes a stencil of one pixel that paints nothing (ISO 32000-2, 8.9.6.2)."""
    for picture in pictures:
        for key in picture.stream_dict.keys() - {"/Type", "/Subtype"}:
            del picture.stream_dict[key]
        picture.write(b"\x80")
        picture.Width = picture.Height = picture.BitsPerComponent = 1
        picture.ImageMask, picture.Decode = True, Array([0, 1])
        picture.Type, picture.Subtype = Name.XObject, Name.Image

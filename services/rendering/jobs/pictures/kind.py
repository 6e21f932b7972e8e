"""Which pictures may be sent as documents, told by their first bytes: what a sender calls a file does not count."""

_MAGIC = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
)
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
"""Their sizes in bytes; two letters alone would make a bitmap of many a text."""
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})


def picture_kind(data: bytes) -> str | None:
    """``JPEG``, ``PNG``, ``WebP``, ``HEIC``, ``AVIF``, ``TIFF``, ``GIF`` or ``BMP``; None for anything else."""
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP"
    if data[:2] == b"BM" and int.from_bytes(data[14:18], "little") in _BMP_HEADERS:
        return "BMP"
    if data[4:8] != b"ftyp":
        return None
    return "AVIF" if data[8:12] in _AVIF_BRANDS else "HEIC" if data[8:12] in _HEIF_BRANDS else None

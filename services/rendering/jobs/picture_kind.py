"""Which pictures may be sent as documents, told by their first bytes: what a sender calls a file does not count."""

_MAGIC = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
)
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})


def picture_kind(data: bytes) -> str | None:
    """``JPEG``, ``PNG``, ``WebP``, ``HEIC``, ``TIFF`` or ``GIF``; None for anything else."""
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP"
    return "HEIC" if data[4:8] == b"ftyp" and data[8:12] in _HEIF_BRANDS else None

"""Names of folders of templates. ``A / B`` is a folder in a folder."""

from collections.abc import Iterable

DEFAULT = "Default"
SEPARATOR = " / "


def normalised(name: str | None) -> str:
    """Return the name as it is stored; blank means the default folder."""
    parts = [part.strip() for part in (name or "").split(SEPARATOR)]
    return SEPARATOR.join(part for part in parts if part) or DEFAULT


def is_within(name: str, folders: Iterable[str]) -> bool:
    """Tell whether a folder is one of ``folders``, or in one of them."""
    return any(name == folder or name.startswith(folder + SEPARATOR) for folder in folders)

"""Texts that people give, without what would let them read as something else: control characters, and marks that turn the
direction of text around (U+202E makes ``gpj.exe`` of ``exe.jpg``)."""

import re

FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_FORBIDDEN_IN_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: str) -> str:
    """A name or a line without forbidden characters and outer blanks."""
    return FORBIDDEN.sub("", text).strip()


def lines(text: str) -> str:
    """A text of several lines (Markdown) without forbidden characters; line breaks and tabs stay."""
    return _FORBIDDEN_IN_TEXT.sub("", text)

"""The secret part of an address."""

from contracts.errors import not_found

LONGEST = 100


def checked(slug: str, noun: str = "Form") -> str:
    """No slug is that long, or has such characters: not worth a question to the service."""
    if len(slug) > LONGEST or not slug.isascii() or not slug.isprintable():
        raise not_found(noun)
    return slug

"""Texts that only one other service reads."""

import base64

import pytest

from contracts.evidence.sealed_text import NotOurs, seal, unseal

KEPT = "n_G-cd8rp2skuK1k5YGrTRnUhMPxinsEaaRQGVdPa442-dUYNfo="


def test_who_has_the_secret_and_knows_the_purpose_reads_it() -> None:
    sealed = seal("secret", "mail", "pass wörd")
    assert unseal("secret", "mail", sealed) == "pass wörd"
    assert seal("secret", "mail", "pass wörd") != sealed, "the same text twice shows nothing"
    assert unseal("secret", "mail", seal("secret", "mail", "")) == ""


def test_what_was_sealed_before_stays_readable() -> None:
    assert unseal("secret", "mail", KEPT) == "pass wörd"


@pytest.mark.parametrize(
    ("secret", "purpose", "sealed"),
    [
        ("other", "mail", KEPT),
        ("secret", "sms", KEPT),
        ("secret", "mail", ""),
        ("secret", "mail", "no base64!"),
        ("secret", "mail", KEPT[:20]),
        ("secret", "mail", base64.urlsafe_b64encode(bytes(40)).decode()),
        ("secret", "mail", ("B" if KEPT[0] != "B" else "C") + KEPT[1:]),
    ],
)
def test_anything_else_is_not_ours(secret: str, purpose: str, sealed: str) -> None:
    with pytest.raises(NotOurs):
        unseal(secret, purpose, sealed)

"""A secret that is replaced in three steps: in each of them, and between them, what one process makes the others accept."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from contracts import links
from contracts.evidence.sealed_text import NotOurs, seal, unseal
from contracts.rotation import Secret, each
from services.submissions.settings import Settings
from services.submissions.storage.signers import one_time_codes
from services.submissions.storage.signers.one_time_codes import Challenge

OLD, NEW = "the secret of until now, which is long", "the secret from now on, which is long"
STEPS = (OLD, Secret(OLD, following=NEW), Secret(NEW, previous=OLD), NEW)
"""Before, then the next one is accepted, then it signs, then the last one is forgotten."""
SIDE_BY_SIDE = [*((one, one) for one in STEPS), *pairwise(STEPS), *((late, early) for early, late in pairwise(STEPS))]
"""Who makes something, and who reads it: while processes are replaced, those of two steps run."""

NOW = datetime(2026, 11, 28, tzinfo=UTC)
FILE = links.FileLink("submissions/x", "application/pdf", "x.pdf", 1)
CHALLENGE = Challenge("submitter:1", "email", "ann@example.com")


def proof_of(secret: str) -> str:
    proof = one_time_codes.proof_of(CHALLENGE, secret, NOW).proof
    assert proof is not None
    return proof


@pytest.mark.parametrize(("maker", "reader"), SIDE_BY_SIDE)
def test_side_by_side_all_understand_each_other(maker: str, reader: str) -> None:
    assert links.read(reader, links.sign(maker, FILE, "slug"), "slug") == FILE
    of_event = replace(FILE, expires_at=None, fields_of=links.FieldsOf("submissions", 31, ""))
    told = links.url("https://sign.example.com", maker, of_event)
    opened = links.opened(told, reader, "submission:31", 99).split("/")[4]
    assert links.read(maker, opened) == replace(of_event, expires_at=99, key_after=True)
    assert unseal(reader, "purpose", seal(maker, "purpose", "text")) == "text"
    proof = proof_of(maker)
    assert one_time_codes.is_passed(CHALLENGE, [proof], reader, NOW)


@pytest.mark.parametrize(
    ("maker", "reader"), [(OLD, NEW), (NEW, OLD), (Secret(NEW, previous=OLD), OLD), (Secret(OLD, following=NEW), NEW)]
)
def test_what_is_accepted_signs_nothing(maker: str, reader: str) -> None:
    with pytest.raises(links.BadLink):
        links.read(reader, links.sign(maker, FILE))
    with pytest.raises(NotOurs):
        unseal(reader, "purpose", seal(maker, "purpose", "text"))
    assert not one_time_codes.is_passed(CHALLENGE, [proof_of(maker)], reader, NOW)


def test_an_accepted_secret_opens_nothing_of_another_purpose_or_person() -> None:
    both = Secret(NEW, previous=OLD)
    with pytest.raises(links.BadLink):
        links.read(both, links.sign(OLD, FILE, "slug"), "another slug")
    with pytest.raises(NotOurs):
        unseal(both, "another purpose", seal(OLD, "purpose", "text"))
    with pytest.raises(NotOurs):
        unseal(both, "purpose", "é no sealed text")
    proof = proof_of(OLD)
    for other in (
        Challenge("submitter:2", "email", "ann@example.com"),
        Challenge("submitter:1", "email", "b@example.com"),
    ):
        assert not one_time_codes.is_passed(other, [proof], both, NOW)


def test_it_is_the_secret_itself_for_whoever_signs() -> None:
    both = Secret(NEW, previous=OLD)
    assert (both, hash(both), f"{both}", both.encode()) == (NEW, hash(NEW), NEW, NEW.encode())
    assert each(both) == (NEW, OLD)
    assert each(NEW) == each(Secret(NEW)) == each(Secret(NEW, previous=NEW)) == (NEW,)


def settings(**more: str) -> Settings:
    required = {"amqp_url": "amqp://x", "blob_url": "file:///x", "base_url": "http://x", "database_url": "sqlite://"}
    return Settings.model_validate({**required, "link_secret": NEW, **more})


@pytest.mark.parametrize("name", ["link_secret_next", "link_secret_previous"])
def test_settings_name_those_that_are_accepted(name: str) -> None:
    assert each(settings(**{name: OLD}).link_secret.get_secret_value()) == (NEW, OLD)
    for without in (settings(), settings(**{name: ""})):
        assert each(without.link_secret.get_secret_value()) == (NEW,)
    shown = repr(settings(**{name: OLD}))
    assert OLD not in shown
    assert NEW not in shown
    with pytest.raises(ValueError, match="at least 32 characters"):
        settings(**{name: "short"})

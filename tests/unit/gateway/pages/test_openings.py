"""What was shown lately, to whom, and for how long that is so."""

from contracts.blobs import BlobRef
from contracts.rpc.submissions.signing.form import FormFile
from services.gateway.pages.answering import openings
from services.gateway.pages.answering.openings import LATELY_SECONDS, Openings


def test_a_minute_after_it_was_shown_it_is_no_longer_known() -> None:
    times = [0.0]
    shown = Openings(lambda: times[0])
    shown.note("slug", ["proof"])
    times[0] = LATELY_SECONDS - 1
    assert shown.lately("slug", ["proof"])
    times[0] = LATELY_SECONDS
    assert not shown.lately("slug", ["proof"])


def test_it_was_shown_to_nobody_else() -> None:
    shown = Openings()
    shown.note("slug", ["proof"])
    assert not shown.lately("slug", [])
    assert not shown.lately("slug", ["another"])
    assert not shown.lately("other", ["proof"])


FIRST = FormFile(file=BlobRef(key="templates/a", sha256="a" * 64, size=1, media_type="application/pdf"), pages=[])


def test_the_first_picture_is_drawn_once_without_asking_and_for_whoever_was_shown_the_page() -> None:
    times = [0.0]
    shown = Openings(lambda: times[0])
    shown.note("slug", ["proof"], ("d1", FIRST))
    assert shown.first_picture("slug", [], "d1") is None
    assert shown.first_picture("other", ["proof"], "d1") is None
    assert shown.first_picture("slug", ["proof"], "d2") is None
    assert shown.first_picture("slug", ["proof"], "d1") == FIRST
    assert shown.first_picture("slug", ["proof"], "d1") is None
    shown.note("slug", ["proof"], ("d1", FIRST))
    times[0] = LATELY_SECONDS
    assert shown.first_picture("slug", ["proof"], "d1") is None
    shown.note("slug", ["proof"])
    assert shown.first_picture("slug", ["proof"], "d1") is None


def test_those_that_were_shown_first_are_forgotten_first() -> None:
    shown = Openings()
    for number in range(openings._MOST + 1):
        shown.note(str(number), [])
    assert not shown.lately("0", [])
    assert shown.lately("1", [])

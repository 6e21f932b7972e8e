"""What the audit trail says, and what it must not say."""

import io
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pikepdf
import pytest
import segno
from PIL import Image

from contracts.evidence.audit_chain import START, next_hash
from contracts.rpc.rendering import PartySummary, SealRequest
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Account
from services.rendering.jobs.paper import sheets
from services.rendering.jobs.paper.qr_code import qr_code
from services.rendering.jobs.paper.sheets import readable
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.trail.audit_trail import AuditTrail, Seal
from services.rendering.protocol.messages import DutyStamped, SealedSummary
from tests.support.judges.documents.pixels import pixel
from tests.support.rendering import drawing
from tests.support.rendering.drawing import saved
from tests.support.rendering.sealing import BEGAN, assert_clean, attachment, pdf_text, seal_request, trail

SEALED_AT = datetime(2026, 11, 20, 10, 20, 5, tzinfo=UTC)
ORIGINAL, SEALED = "ab" * 32, "cd" * 32


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(f"file://{tmp_path}/blobs")


def made(request: SealRequest, blobs: BlobStore, *documents: SealedSummary) -> bytes:
    summaries = documents or (SealedSummary("Consulting agreement", ORIGINAL, SEALED, 2, 81_234, "B-B"),)
    files = {one.uuid: blobs.get(one.file) for one in request.attachments}
    trail = AuditTrail(request, files, Seal("Meier Seal", "Meier Root 1a2b3c", SEALED_AT))
    with trail.finish(summaries) as pdf:
        return saved(pdf)


def words(data: bytes, tmp_path: Path) -> str:
    return " ".join(pdf_text(data, tmp_path).split())


def test_it_says_who_what_when_and_how_to_check(blobs: BlobStore, tmp_path: Path) -> None:
    request = seal_request(blobs)
    data = made(request, blobs)
    said = words(data, tmp_path)
    for expected in (
        "Meier & Partner",
        "Audit trail",
        "Consulting agreement 2026",
        ORIGINAL,
        SEALED,
        "2 pages",
        "81 KB",
        "PAdES B-B",
        "Ana Kowalska",
        "ana@example.com",
        "203.0.113.7",
        "Europe/Warsaw",
        "Mozilla/5.0 (X11; Linux x86_64)",
        "Signed 20 Nov 2026, 10:35:03 CET",
        "Łódź 漢字",
        "12/01/2026",
        "Checked",
        "Invitation sent by e-mail",
        "Meier Seal",
        "Meier Root 1a2b3c",
        request.trail[-1].hash,
        "Countersign",
        "Page 1 of",
    ):
        assert expected in said, expected
    assert_clean(data, tmp_path)


def test_it_bears_the_address_of_the_page_that_checks_it(blobs: BlobStore, tmp_path: Path) -> None:
    address = "https://sign.example/verify?submission=7"
    request = seal_request(blobs).model_copy(update={"base_url": "https://sign.example", "submission_id": 7})
    data = made(request, blobs)
    assert address in words(data, tmp_path)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        links = [one.A.URI for page in pdf.pages for one in page.get("/Annots", [])]
    assert [str(one) for one in links] == [address]
    assert_clean(data, tmp_path)
    assert address not in words(made(seal_request(blobs), blobs), tmp_path)  # nobody could reach it


def test_programs_read_what_it_was_made_of(blobs: BlobStore) -> None:
    request = seal_request(blobs)
    data = made(request, blobs)
    head = request.trail[-1].hash
    assert f"/CountersignEvents ({len(request.trail)} {head})".encode() in data
    assert f"/CountersignSealed ({SEALED})".encode() in data


def test_its_qr_code_is_drawn_as_the_library_makes_it(tmp_path: Path) -> None:
    """Each module, as poppler draws it: dark where it must be, and white around it."""
    address = "https://sign.example/verify?submission=7"
    sheet = sheets.Paper((100.0, 100.0), sheets.Margins(0, 0, 0, 0), lambda *_: None)
    sheet.flow([qr_code(address, 100.0)])
    with sheet.save(title="Code", language="en") as pdf:
        (tmp_path / "code.pdf").write_bytes(saved(pdf))
    drawn = [
        "pdftoppm",
        "-r",
        "720",
        "-gray",
        "-singlefile",
        "-png",
        str(tmp_path / "code.pdf"),
        str(tmp_path / "code"),
    ]
    subprocess.run(drawn, check=True)
    expected = [list(row) for row in segno.make(address, error="m", micro=False).matrix_iter(border=4)]
    picture = Image.open(tmp_path / "code.png").convert("L")
    side = picture.width / len(expected)
    found = [
        [int(pixel(picture, (int((x + 0.5) * side), int((y + 0.5) * side))) < 128) for x in range(len(expected))]
        for y in range(len(expected))
    ]
    assert found == expected


def test_what_a_duty_stamp_is_and_how_far_the_seal_of_a_stamped_file_goes(blobs: BlobStore, tmp_path: Path) -> None:
    stamped, said_of_stamps = "ef" * 32, "the seal of a stamped document covers the file as it was sealed"
    assert said_of_stamps not in words(made(seal_request(blobs), blobs), tmp_path)
    request = seal_request(blobs, trail=trail([(None, "request_dutystamp", {"provider": "stamps.example"})]))
    stamps = DutyStamped("stamps.example", ["CS00001001"], SEALED_AT)
    document = SealedSummary("Agreement", ORIGINAL, stamped, 2, 81_234, "B-B", stamps=stamps, unstamped_sha256=SEALED)
    said = words(made(request, blobs, document), tmp_path)
    assert "Duty stamped with CS00001001 by stamps.example on 20 Nov 2026" in said
    for title, digest in (("uploaded", ORIGINAL), ("sealed", SEALED), ("stamped", stamped)):
        assert f"SHA-256 as it was {title} {digest}" in said
    assert said_of_stamps in said


def test_when_somebody_was_invited_mailed_and_came(blobs: BlobStore, tmp_path: Path) -> None:
    lines = trail(
        [(1, "invite_party", {}), (1, "view_form", {}), (1, "send_email", {"sent_at": "2026-11-20T09:14:05Z"})]
    )
    request = seal_request(blobs, trail=lines)
    request.parties[0].invited_at = BEGAN
    request.parties[0].sent_at = BEGAN + timedelta(seconds=2)
    request.parties[0].opened_at = BEGAN + timedelta(minutes=7)
    said = words(made(request, blobs), tmp_path)
    for expected in ("INVITED", "INVITATION SENT", "FIRST OPENED", "Party invited"):
        assert expected in said
    for time in ("10:14:03", "10:14:05", "10:21:03"):
        assert f"20 Nov 2026, {time} CET" in said
    assert "taken by the mail server 20 Nov 2026, 10:14:05 CET" in said


def test_who_passed_a_one_time_code_and_when(blobs: BlobStore, tmp_path: Path) -> None:
    sent = {"email": "ana@example.com", "ip": "192.0.2.9"}
    lines = trail([(1, "send_2fa_email", sent), (1, "email_verified", sent), (2, "email_verified", {})])
    request = seal_request(blobs, trail=lines)
    request.parties[0].completed_at = BEGAN + timedelta(minutes=10)
    request.parties[1].completed_at = BEGAN + timedelta(minutes=10)  # verified only afterwards, to look at the result
    said = words(made(request, blobs), tmp_path)
    assert said.count("E-MAIL ADDRESS VERIFIED") == 1
    assert "by one-time code, 20 Nov 2026, 10:21:03 CET" in said
    assert "Verification code sent by e-mail" in said
    assert "192.0.2.9" in said


def test_whose_hands_the_device_came_from(blobs: BlobStore, tmp_path: Path) -> None:
    """A party that signed in person, on a device that another one had handed over; a line without a name invents none."""
    to_her = {"party": {"role": "Tenant", "name": "Ann Ray"}, "named": {"role": "Client", "name": "Ana"}, "ip": "::7"}
    lines = trail(
        [(2, "hand_device", to_her), (1, "complete_form", {"let_in_by": [{"way": "in_person", "by": "Ann Ray"}]})]
    )
    text = words(made(seal_request(blobs, trail=lines), blobs), tmp_path)
    assert "a device handed over in person by Ann Ray" in text
    assert "Device handed over, to sign in person" in text


def test_who_proved_his_identity_where_and_when(blobs: BlobStore, tmp_path: Path) -> None:
    at = {"issuer": "https://login.example.com", "provider": "Acme", "method": "qes"}
    ana = {**at, "identified_as": "Ana de la Cruz", "subject": "s-248289761001", "acr": "urn:qes"}
    other = {**at, "reason": "other_person", "identified_as": "Eve Else", "proved_email": "eve@example.com"}
    lines = trail(
        [
            (1, "start_verification", at),
            (1, "fail_verification", other),
            (1, "complete_verification", {**at, "subject": "s-before"}),
            (1, "complete_verification", ana),
            (2, "complete_verification", {**at, "subject": "s-of-nothing"}),
        ]
    )
    request = seal_request(blobs, trail=lines)
    proved = drawing.field_value("verification", "verified", name="Identity")
    request.values.append(proved.model_copy(update={"submitter_id": 1}))
    said = words(made(request, blobs), tmp_path)
    parties, _, log = said.partition("Event log")
    assert parties.count("IDENTITY VERIFIED") == 1
    for expected in ("Ana de la Cruz", "s-248289761001", "by https://login.example.com", "assurance urn:qes", " CET"):
        assert expected in parties, expected
    assert "s-before" not in parties
    for expected in ("Identity check started", "Identity check failed", "Eve Else", "eve@example.com", "other_person"):
        assert expected in log, expected


def test_every_time_has_its_zone(blobs: BlobStore, tmp_path: Path) -> None:
    said = words(made(seal_request(blobs), blobs), tmp_path)
    times = said.count("2026, 1")
    assert times >= 10
    assert said.count(" CET") == times


def test_what_the_api_completed_is_never_called_signed(blobs: BlobStore, tmp_path: Path) -> None:
    said = words(made(seal_request(blobs), blobs), tmp_path)
    assert "Completed via API by paula@example.com 20 Nov 2026, 10:42:03 CET" in said
    witness = said[said.index("witness@example.com") :]
    assert "Signed" not in witness[: witness.index("Event log")]


def test_each_line_of_the_log_with_its_hash(blobs: BlobStore, tmp_path: Path) -> None:
    request = seal_request(blobs)
    said = words(made(request, blobs), tmp_path)
    for event in request.trail:
        assert f"{event.hash[:12]}…" in said


@pytest.mark.parametrize("tampered", ["data", "time", "removed", "submitter", "kind"])
def test_a_chain_that_does_not_hold_is_not_printed(blobs: BlobStore, tampered: str) -> None:
    lines = trail()
    changed = {
        "data": lines[2].model_copy(update={"data": {"ip": "198.51.100.1"}}),
        "time": lines[2].model_copy(update={"occurred_at": BEGAN}),
        "submitter": lines[2].model_copy(update={"submitter_id": 2}),
        "kind": lines[2].model_copy(update={"event_type": "decline_form"}),
    }
    lines = [*lines[:2], *([changed[tampered]] if tampered in changed else []), *lines[3:]]
    with pytest.raises(Refused, match="does not hold at line 3"):
        made(seal_request(blobs, trail=lines), blobs)


def test_masked_values_stay_masked(blobs: BlobStore, tmp_path: Path) -> None:
    secret = drawing.field_value("text", "DE89370400440532013000", name="IBAN", preferences={"mask": -4})
    said = words(made(seal_request(blobs, values=[secret]), blobs), tmp_path)
    assert "XXXXXXXXXXXXXXXXXX3000" in said
    assert "8937" not in said


def test_pictures_are_shown_and_files_named(blobs: BlobStore, tmp_path: Path) -> None:
    scan = attachment(blobs, b"scan", "f1", "passport scan.pdf", "application/pdf")
    picture = attachment(blobs, drawing.signature_png(), "a1", "signature.png")
    values = [
        drawing.field_value("signature", "a1", name="Signature"),
        drawing.field_value("file", ["f1"], name="ID"),
        drawing.field_value("heading", None, name="Part one", default_value="Part one"),
    ]
    data = made(seal_request(blobs, values=values, attachments=[picture, scan]), blobs)
    said = words(data, tmp_path)
    assert "passport scan.pdf" in said
    assert scan.file.sha256[:32] in said
    assert "PART ONE" not in said
    with pikepdf.open(io.BytesIO(data)) as pdf:
        contents = [page.Resources.XObject.Sheet for page in pdf.pages]
        assert any("/XObject" in sheet.Resources for sheet in contents), "the signature's picture"


@pytest.mark.parametrize(
    ("zone", "size"),
    [("America/New_York", (612, 792)), ("Europe/Paris", (595.28, 841.89)), ("UTC", (595.28, 841.89))],
)
def test_letter_in_america_a4_elsewhere(blobs: BlobStore, zone: str, size: tuple[float, float]) -> None:
    with pikepdf.open(io.BytesIO(made(seal_request(blobs, account=Account(time_zone=zone)), blobs))) as pdf:
        assert [round(float(number), 2) for number in pdf.pages[0].mediabox[2:]] == list(size)


def test_a_long_log_goes_on_over_pages(blobs: BlobStore, tmp_path: Path) -> None:
    events: list[Any] = [(1, "view_form", {"ip": f"203.0.113.{number % 250}"}) for number in range(200)]
    data = made(seal_request(blobs, trail=trail(events)), blobs)
    said = words(data, tmp_path)
    assert said.count("Form viewed") == 200
    with pikepdf.open(io.BytesIO(data)) as pdf:
        pages = len(pdf.pages)
    assert pages > 5
    assert f"Page {pages} of {pages}" in said


def test_strangers_cannot_make_it_lie_or_fail(blobs: BlobStore, tmp_path: Path) -> None:
    """Names with control characters and turned directions, endless user agents, characters that no font has."""
    party = PartySummary(
        id=1,
        role="Client",
        name="Ana\u202egnp.exe\x07 Smith \U000f0000",
        email="ana@example.com",
        status="declined",
        decline_reason="Because\n" + "no " * 800,
        user_agent="x" * 30_000,
        consent={"agreed_at": "2026-11-20T09:20:00+00:00", "text": "I agree to do this electronically."},
    )
    kind = (1, "some_new_event", {"reason": "\u2066" * 50 + "odd", "unknown": {"deep": 1}})
    said = words(made(seal_request(blobs, parties=[party], trail=trail([kind])), blobs), tmp_path)
    assert "Anagnp.exe Smith" in said
    assert "Declined: Because no no" in said
    assert "Some new event" in said
    assert "I agree to do this electronically." in said
    assert "unknown" not in said


def test_a_trail_without_events_or_parties_is_still_one(blobs: BlobStore, tmp_path: Path) -> None:
    said = words(made(seal_request(blobs, parties=[], values=[], trail=[]), blobs), tmp_path)
    assert "How to verify" in said


def test_titles_of_fields_are_printed_without_their_marks(blobs: BlobStore, tmp_path: Path) -> None:
    request = seal_request(blobs)
    named = next(one for one in request.values if one.field.type == "text" and one.value)
    named.field.title = "Your **full** [name](https://example.com)"
    said = words(made(request, blobs), tmp_path)
    assert "YOUR FULL NAME" in said
    assert "**" not in said


def test_the_document_has_a_title_and_a_language(blobs: BlobStore) -> None:
    with pikepdf.open(io.BytesIO(made(seal_request(blobs), blobs))) as pdf:
        assert str(pdf.docinfo["/Title"]) == "Audit trail - Consulting agreement 2026"
        assert str(pdf.Root.Lang) == "en"
        assert pdf.Root.ViewerPreferences.DisplayDocTitle


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\u202eb\u2067c\x00d", "abcd"),
        ("e\u0301", "é"),
        ("x" * 3000, "x" * 1999 + "…"),
        ("two\nlines", "two\nlines"),
        ("private \ue000", "private "),
        (7, "7"),
    ],
)
def test_readable(text: object, expected: str) -> None:
    assert readable(text) == expected


def test_the_chain_is_what_the_contract_says() -> None:
    """Written down once more, so that a change of the rule is noticed: old trails would no longer hold. Anybody can do
    this with sha256sum."""
    at = datetime(2026, 3, 4, 5, 6, 7, 89_100, tzinfo=UTC)
    one = next_hash(START, submitter_id=None, event_type="create_submission", occurred_at=at, data={})
    two = next_hash(one, submitter_id=1, event_type="view_form", occurred_at=at, data={"é": [1, None], "ip": "::1"})
    assert one == "f995d8c53476f2a477bd439690c6fd8ba0ee5e06d3527e8201874c548a5e6485"
    assert two == "9c6b987534d9b42abde41560ccc75204436575883ceea3b2368051f657353324"
    finer = at + timedelta(microseconds=800)
    assert next_hash(START, submitter_id=None, event_type="create_submission", occurred_at=finer, data={}) == one


def test_a_hostile_name_says_nothing_in_another_ones_place(blobs: BlobStore, tmp_path: Path) -> None:
    """Its own line of the paper, no control or direction characters, cut off; what it looks like, it says as a name."""
    name = "Ana · IP 192.0.2.1\u202e\x07\u2066 by admin@example.com " + "x" * 5_000
    changes: list[dict[str, Any]] = [
        {"what": f"values.Field {number}", "before": None, "after": name} for number in range(40)
    ]
    changes.append({"what": ["no text"], "before": {"a": [1]}, "after": {}})
    lines = trail(
        [
            (
                1,
                "view_form",
                {"party": {"role": "Client", "name": name, "email": "ana@example.com"}, "ip": "203.0.113.7"},
            ),
            (1, "update_submitter", {"party": "no object", "by": "paula@example.com", "changes": changes}),
            (1, "send_email", {"party": {"role": "Client"}, "email": "x", "sent_at": ["no time"]}),
            (
                1,
                "complete_form",
                {"let_in_by": ["no object", {"way": "code"}, {"way": name}], "statement": "no object"},
            ),
        ]
    )
    data = made(seal_request(blobs, trail=lines), blobs)
    said = pdf_text(data, tmp_path)
    assert not set("\u202e\u2066\x07") & set(said)
    (shown,) = [line for line in said.splitlines() if "203.0.113.7" in line and "IP" in line and "Ana" not in line][:1]
    assert shown.split() == ["IP", "203.0.113.7"]
    assert "and 29 more" in said
    assert_clean(data, tmp_path)


def test_of_a_test_every_page_says_so(blobs: BlobStore, tmp_path: Path) -> None:
    request = seal_request(blobs)
    mark = "TEST – no legal effect"
    assert mark not in words(made(request, blobs), tmp_path)
    data = made(request.model_copy(update={"test": True}), blobs)
    pages = [page for page in pdf_text(data, tmp_path).split("\f") if page.strip()]
    assert len(pages) > 1
    assert all(page.count(mark) >= 2 for page in pages)
    assert pages[0].count(mark) == 3, "below the title as well"
    assert_clean(data, tmp_path)

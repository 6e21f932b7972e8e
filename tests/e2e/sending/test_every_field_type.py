"""Every type of field from the template to the sealed file; values that do not hold; names in every script."""

import io
import uuid
from typing import Any

import pikepdf
import pytest
import requests
from PIL import Image

from tests.support.material.agreement import agreement_pdf, filled, form, sign
from tests.support.material.outcomes import completed, fetched, pdf_text
from tests.support.rendering.drawing import drawn_in, encoded, picture_of, signature_png, text_in
from tests.support.services.suite import RunningSuite

WIDTH, HEIGHT = 595, 842
RED = (200, 30, 30)


def placed(
    row: int, kind: str, name: str, *, column: float = 0.1, option: str | None = None, **more: Any
) -> dict[str, Any]:
    """A field on the one page, ``row`` from the top."""
    area = {"x": column, "y": 0.04 + 0.05 * row, "w": 0.35, "h": 0.035, "page": 1}
    areas = [{**area, "option": option}] if option else [area]
    return {"name": name, "type": kind, "role": "Signer", "areas": areas, **more}


def with_options(row: int, kind: str, name: str, options: list[str]) -> dict[str, Any]:
    field = placed(row, kind, name, options=options)
    field["areas"] = [
        {"x": 0.1 + 0.1 * number, "y": 0.04 + 0.05 * row, "w": 0.05, "h": 0.035, "page": 1, "option": option}
        for number, option in enumerate(options)
    ]
    return field


FIELDS = [
    placed(0, "heading", "Title", default_value="Lease for {name}"),
    placed(1, "text", "Address"),
    placed(2, "number", "Rent", preferences={"format": "eur"}),
    placed(3, "date", "From", preferences={"format": "DD.MM.YYYY"}),
    placed(4, "checkbox", "Pets"),
    placed(4, "checkbox", "Smoker", column=0.5, required=False),
    with_options(5, "radio", "Floor", ["One", "Two", "Three"]),
    placed(6, "select", "City", options=["Lyon", "Gdańsk"]),
    with_options(7, "multiple", "Keys", ["Door", "Cellar", "Garage"]),
    placed(8, "cells", "Code"),
    placed(9, "phone", "Phone"),
    placed(10, "signature", "Signature"),
    placed(11, "initials", "Initials"),
    placed(12, "image", "Photo"),
    placed(13, "file", "Passport"),
    placed(14, "stamp", "Stamp"),
    placed(15, "strikethrough", "Struck"),
    placed(16, "text", "Clause", readonly=True, default_value="Fixed clause"),
    placed(17, "text", "Today", required=False, default_value="Signed by {{name}}"),
    placed(17, "dutystamp", "Meterai", column=0.5),
    placed(
        18, "payment", "Fee", preferences={"price": 25, "currency": "GBP", "payment_url": "https://pay.example.com"}
    ),
]
VALUES = {
    "Address": "12 Łódź Street",
    "Rent": 1234.5,
    "From": "2026-03-04",
    "Pets": True,
    "Floor": "Two",
    "City": "Gdańsk",
    "Keys": ["Garage", "Door"],
    "Code": "AB12",
    "Phone": "+1 415 555-0123",
}


@pytest.fixture
def signer(suite: RunningSuite) -> dict[str, Any]:
    template = suite.template(agreement_pdf([]), name="All types", document={"fields": FIELDS})
    assert [(each["name"], each["type"]) for each in template["fields"]] == [(f["name"], f["type"]) for f in FIELDS]
    person = {"email": "ana@example.com", "name": "Ana Řezáč"}
    body = {"template_id": template["id"], "submitters": [person], "send_email": False}
    suite.api("PUT", "/account", {"with_file_links": True})
    made: dict[str, Any] = suite.api("POST", "/submissions", body)[0]
    suite.api("PUT", "/account", {"with_file_links": False})
    return made


def upload(suite: RunningSuite, slug: str, kind: str, name: str, data: bytes, media_type: str) -> requests.Response:
    """As a published client does it."""
    return requests.post(
        f"{suite.base_url}/api/attachments",
        data={"submitter_slug": slug, "type": kind},
        files={"file": (name, data, media_type)},
        timeout=60,
    )


def attached(suite: RunningSuite, slug: str) -> dict[str, Any]:
    """Values for the fields that hold files."""
    photo = encoded(Image.new("RGB", (300, 200), RED), "AVIF")
    files: dict[str, tuple[str, str, bytes, str]] = {
        "Signature": ("signature", "s.png", signature_png(), "image/png"),
        "Initials": ("initials", "i.png", signature_png((200, 200)), "image/png"),
        "Photo": ("image", "photo.avif", photo, "image/avif"),
        "Passport": ("file", "Pass für Zoë.pdf", agreement_pdf(["A passport"]), "application/pdf"),
    }
    found: dict[str, Any] = {}
    for name, (kind, filename, data, media_type) in files.items():
        answer = upload(suite, slug, kind, filename, data, media_type)
        assert answer.status_code == 200, answer.text
        found[name] = answer.json()["uuid"]
    return {**found, "Passport": [found["Passport"]]}


def in_area(sealed: bytes, name: str, number: int = 0) -> str:
    area = next(field for field in FIELDS if field["name"] == name)["areas"][number]
    left, top = area["x"] * WIDTH, HEIGHT - area["y"] * HEIGHT
    return text_in(sealed, 1, (left, top - area["h"] * HEIGHT, left + area["w"] * WIDTH, top)).strip()


def ink(sealed: bytes, name: str, number: int = 0) -> Image.Image:
    return ink_of(sealed, FIELDS, name, number)


def ink_of(sealed: bytes, fields: list[dict[str, Any]], name: str, number: int = 0) -> Image.Image:
    area = next(field for field in fields if field["name"] == name)["areas"][number]
    left, top = area["x"] * WIDTH, area["y"] * HEIGHT
    picture = picture_of(sealed, 1)
    return picture.crop((int(left), int(top), int(left + area["w"] * WIDTH), int(top + area["h"] * HEIGHT)))


def is_drawn(picture: Image.Image) -> bool:
    darkest = picture.convert("L").getextrema()[0]
    return isinstance(darkest, int | float) and darkest < 160


def test_every_type_is_in_the_sealed_file(suite: RunningSuite, signer: dict[str, Any]) -> None:
    slug = signer["slug"]
    values = {**VALUES, **attached(suite, slug)}
    sign(suite, slug, values)
    submission = completed(suite, signer["submission_id"])
    sealed = fetched(submission["documents"][0]["url"])

    expected = {
        "Title": "Lease for Ana Řezáč",
        "Address": "12 Łódź Street",
        "Rent": "1\u00a0234,50\u00a0€",
        "From": "04.03.2026",
        "City": "Gdańsk",
        "Phone": "+14155550123",
        "Clause": "Fixed clause",
        "Today": "Signed by Ana Řezáč",
        "Fee": "£25.00",
    }
    assert {name: in_area(sealed, name) for name in expected} == expected
    assert in_area(sealed, "Code").replace(" ", "").replace("\r\n", "") == "AB12"
    assert "Pass für Zoë.pdf" in in_area(sealed, "Passport")
    for name, number in (("Pets", 0), ("Floor", 1), ("Keys", 0), ("Keys", 2)):
        assert is_drawn(ink(sealed, name, number)), (name, number)
    for name, number in (("Smoker", 0), ("Floor", 0), ("Floor", 2), ("Keys", 1)):
        assert not is_drawn(ink(sealed, name, number)), (name, number)
    for name in ("Signature", "Initials", "Stamp", "Struck"):
        assert is_drawn(ink(sealed, name)), name
    assert ink(sealed, "Meterai").convert("L").getextrema() == (255, 255), "nothing is drawn without an order"
    colors: list[Any] = [color for _, color in ink(sealed, "Photo").getcolors(100_000) or []]
    assert any(all(abs(a - b) < 12 for a, b in zip(color, RED, strict=True)) for color in colors)

    said = submission["submitters"][0]["values"]
    for name in ("Address", "Rent", "From", "Pets", "Floor", "City", "Code"):
        assert said[name] == VALUES[name], name
    assert said["Keys"] == ["Door", "Garage"]
    assert said["Phone"] == "+14155550123"
    for name in ("Signature", "Initials", "Photo"):
        shown = Image.open(io.BytesIO(fetched(said[name]))).format
        assert shown == ("JPEG" if name == "Photo" else "PNG"), "what every browser can show"
    (passport,) = said["Passport"]
    assert fetched(passport) == agreement_pdf(["A passport"])
    with pikepdf.open(io.BytesIO(sealed)) as pdf:
        linked = [str(one.A.URI) for one in pdf.pages[0].Annots if one.Subtype == "/Link"]
    (on_paper,) = [url for url in linked if "/file/" in url]
    assert fetched(on_paper) == agreement_pdf(["A passport"]), "its name on paper leads to it"


BAD_VALUES: list[tuple[str, list[Any]]] = [
    ("Address", [5 * [1], {}, "x" * 10_001, "a\u0000b", "a\u0007b"]),
    ("Rent", ["twelve", True, [1], 1e300, "1,5", "NaN"]),
    ("From", ["yesterday", "2026-02-30", [], True]),
    ("Pets", ["maybe", [], {}, 2]),
    ("Floor", ["Four", 5, ["One", "Two"]]),
    ("City", ["Paris", {}]),
    ("Keys", ["Attic", ["Door", "Attic"], {}]),
    ("Code", [{}, [1]]),
    ("Phone", ["555", "+", "+12x4567", "0049 170 1234567"]),
    ("Signature", ["Ana", "", 5, [], str(uuid.UUID(int=7)), {}]),
    ("Photo", ["photo.png", str(uuid.UUID(int=7))]),
    ("Passport", ["passport.pdf", [str(uuid.UUID(int=7))], 5]),
]


def test_values_that_do_not_hold_name_their_field(suite: RunningSuite, signer: dict[str, Any]) -> None:
    slug = signer["slug"]
    by_name = {field["name"]: field["uuid"] for field in form(suite, slug)["fields"]}
    right = filled(suite, slug, {**VALUES, **attached(suite, slug)})
    # As wrong as can be for JSON: NUL is refused before anybody asks whose it is.
    for name, wrong in BAD_VALUES:
        for value in wrong:
            body = {"request_id": uuid.uuid4().hex, "values": {**right, by_name[name]: value}}
            refused = suite.page("POST", f"/s/{slug}/complete", body, status=422)
            assert any(by_name[name] in str(detail["field"]) for detail in refused["details"]), (name, value, refused)
    missing = {uuid_: value for uuid_, value in right.items() if uuid_ != by_name["Address"]}
    body = {"request_id": uuid.uuid4().hex, "values": missing}
    refused = suite.page("POST", f"/s/{slug}/complete", body, status=422)
    assert refused["details"] == [{"field": by_name["Address"], "reason": "is required"}]
    for name, value in (("Clause", "Another clause"), ("Title", "Mine"), ("Struck", True)):
        body = {"request_id": uuid.uuid4().hex, "values": {by_name[name]: value}}
        refused = suite.page("POST", f"/s/{slug}/values", body, status=422)
        assert refused["error"] in ("Read-only field", "Invalid field")
        assert refused["details"][0]["field"] == by_name[name]
    stranger = {"request_id": uuid.uuid4().hex, "values": {str(uuid.uuid4()): "x"}}
    assert suite.page("POST", f"/s/{slug}/values", stranger, status=422)["error"] == "Invalid field"
    still = suite.api("GET", f"/submitters/{signer['id']}")
    assert (still["status"], still["values"]) == ("pending", {})


RULES = [
    placed(0, "text", "Zip", validation={"pattern": "[0-9]{5}", "message": "Five digits, please"}),
    placed(1, "number", "Count", validation={"min": 2, "max": 10, "step": 2}),
    placed(2, "date", "Day", validation={"min": "2026-01-01", "max": "2026-12-31"}),
]


def test_rules_of_fields(suite: RunningSuite) -> None:
    template = suite.template(agreement_pdf([]), document={"fields": RULES})
    body = {"template_id": template["id"], "submitters": [{"email": "a@example.com"}], "send_email": False}
    (signer,) = suite.api("POST", "/submissions", body)
    right = {"Zip": "12345", "Count": 4, "Day": "2026-06-01"}
    uuids = {field["name"]: field["uuid"] for field in form(suite, signer["slug"])["fields"]}
    faults = [
        ("Zip", "1234", "Five digits"),
        ("Zip", "12345\n", "Five digits"),
        ("Count", 0, "below"),
        ("Count", 12, "above"),
        ("Count", 3, "steps"),
        ("Day", "2025-12-31", "below"),
        ("Day", "2027-01-01", "above"),
    ]
    for name, value, words in faults:
        values = {uuids[key]: given for key, given in {**right, name: value}.items()}
        body = {"request_id": uuid.uuid4().hex, "values": values}
        refused = suite.page("POST", f"/s/{signer['slug']}/complete", body, status=422)
        assert refused["details"][0]["field"] == uuids[name]
        assert words in refused["details"][0]["reason"]
        given = {"completed": True, "values": {name: value}}
        refused = suite.api("PUT", f"/submitters/{signer['id']}", given, status=422)
        assert refused["details"][0]["field"] == f"values.{name}"
    assert sign(suite, signer["slug"], right)["state"] == "completed"
    completed(suite, signer["submission_id"])


def styled(row: int, name: str, kind: str = "text", **preferences: Any) -> dict[str, Any]:
    return placed(row, kind, name, preferences=preferences)


STYLED = [
    styled(0, "Plain"),
    styled(1, "Large", font_size=17),
    styled(2, "Times", font="Times"),
    styled(3, "Courier", font="Courier"),
    styled(4, "Bold", font_type="bold"),
    styled(5, "Italic", font_type="italic"),
    styled(6, "Both", font_type="bold_italic"),
    styled(7, "Blue", color="blue"),
    styled(8, "White", color="white", background="black"),
    styled(9, "Right", align="right"),
    styled(10, "Center", align="center"),
    styled(11, "Top", valign="top", font_size=8),
    styled(12, "Bottom", valign="bottom", font_size=8),
    styled(13, "Middle", font_size=8),
    styled(14, "Masked", mask=True),
    styled(15, "Half masked", mask=-2),
    styled(16, "Day", "date", format="DD/MM/YYYY"),
    styled(17, "Common day", "date"),
    styled(18, "Dollars", "number", format="usd"),
]
ON_PAPER = {
    # XXXX is what a mask draws.
    "Masked": "XXXX", "Half masked": "XXrd", "Day": "04/03/2026", "Common day": "03/04/2026", "Dollars": "$1,234.50",
}  # fmt: skip
BLACK, BLUE, WHITE = (0, 0, 0), (0, 33, 166), (255, 255, 255)


def test_preferences_are_seen_on_paper(suite: RunningSuite) -> None:
    made = suite.template(agreement_pdf([]), document={"fields": STYLED})
    given = {"Day": "2026-03-04", "Common day": "2026-03-04", "Dollars": 1234.5}
    values = {each["name"]: given.get(each["name"], "Word") for each in STYLED}
    person = {"email": "a@example.com", "values": values, "completed": True}
    body = {"template_id": made["id"], "submitters": [person], "send_email": False}
    (signer,) = suite.api("POST", "/submissions", body)
    sealed = fetched(completed(suite, signer["submission_id"])["documents"][0]["url"])
    found = {each["name"]: drawn_in(sealed, each["areas"][0]) for each in STYLED}
    assert {name: one.text for name, one in found.items()} == dict.fromkeys(values, "Word") | ON_PAPER
    plain = found["Plain"]
    assert (plain.font, plain.color) == ("LiberationSans-Regular", BLACK)
    fonts = {
        "Times": "LiberationSerif-Regular", "Courier": "LiberationMono-Regular", "Bold": "LiberationSans-Bold",
        "Italic": "LiberationSans-Italic", "Both": "LiberationSans-BoldItalic",
    }  # fmt: skip
    assert {name: found[name].font for name in fonts} == fonts
    assert (round(found["Large"].size), round(found["Top"].size)) == (17, 8)
    assert (found["Blue"].color, found["White"].color) == (BLUE, WHITE)
    grounds = {name: ink_of(sealed, STYLED, name).getpixel((2, 2)) for name in ("White", "Plain")}
    assert grounds == {"White": BLACK, "Plain": WHITE}
    area = STYLED[0]["areas"][0]
    left, right = area["x"] * WIDTH, (area["x"] + area["w"]) * WIDTH
    assert plain.left - left < 5 < left + 50 < found["Center"].left
    assert right - found["Right"].right < 5
    assert abs((found["Center"].left + found["Center"].right) / 2 - (left + right) / 2) < 2
    heights = [HEIGHT * (1 - STYLED[row]["areas"][0]["y"]) - found[name].top for row, name in enumerate(found)]
    top, bottom, middle = (heights[list(found).index(name)] for name in ("Top", "Bottom", "Middle"))
    assert top + 3 < middle < bottom - 3
    assert abs(middle - (top + bottom) / 2) < 2
    assert suite.api("GET", f"/submitters/{signer['id']}")["values"]["Masked"] == "Word", (
        "masked on paper, not for its owner"
    )


NAMES = {
    "Polish": "Zażółć gęślą jaźń",
    "Greek": "Νίκος Καζαντζάκης",
    "Cyrillic": "Фёдор Достоевский",
    "Arabic": "نجيب محفوظ",
    "Hebrew": "עמוס עוז",
    "Thai": "สุนทรภู่",
    "Devanagari": "प्रेमचंद",
    "Chinese": "鲁迅 張愛玲",
}


def test_names_in_every_script_are_drawn_or_refused(suite: RunningSuite) -> None:
    fields = [placed(row, "text", script) for row, script in enumerate(NAMES)] + [placed(17, "signature", "Sign")]
    template = suite.template(agreement_pdf([]), document={"fields": fields})
    person = {"email": "a@example.com", "name": NAMES["Arabic"]}
    body = {
        "template_id": template["id"],
        "submitters": [person],
        "send_email": False,
        "name": " ".join(NAMES.values()),
    }
    (signer,) = suite.api("POST", "/submissions", body)
    slug = signer["slug"]
    uuids = {field["name"]: field["uuid"] for field in form(suite, slug)["fields"]}
    typed: dict[str, str] = {}
    for script, name in NAMES.items():
        command = {"text": name, "type": "signature", "request_id": uuid.uuid4().hex}
        typed[script] = suite.page("POST", f"/s/{slug}/typed_signature", command)["uuid"]
    unknown = "\U00013000 \U0001f9ff \ue000"
    for call, body in (
        ("values", {"values": {uuids["Greek"]: unknown}}),
        ("typed_signature", {"text": unknown, "type": "signature"}),
    ):
        refused = suite.page("POST", f"/s/{slug}/{call}", {"request_id": uuid.uuid4().hex, **body}, status=422)
        assert "U+E000" in str(refused), refused
    values = {uuids[script]: name for script, name in NAMES.items()} | {uuids["Sign"]: typed["Thai"]}
    suite.page("POST", f"/s/{slug}/complete", {"request_id": uuid.uuid4().hex, "values": values})
    submission = completed(suite, signer["submission_id"])
    assert submission["submitters"][0]["values"]["Devanagari"] == NAMES["Devanagari"]
    text = "".join(pdf_text(fetched(submission["documents"][0]["url"])).split())
    for script in ("Polish", "Greek", "Cyrillic", "Chinese"):
        assert "".join(NAMES[script].split()) in text, script
    sealed = fetched(submission["documents"][0]["url"])
    picture = picture_of(sealed, 1)
    for row, script in enumerate(NAMES):
        top = int((0.04 + 0.05 * row) * HEIGHT)
        assert is_drawn(picture.crop((int(0.1 * WIDTH), top, int(0.45 * WIDTH), top + int(0.035 * HEIGHT)))), script

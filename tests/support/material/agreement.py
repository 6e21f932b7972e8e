"""An agreement with text tags for two roles, and the calls of a signer's browser."""

import io
import uuid
from typing import Any, Protocol

import pikepdf

SELLER_TAGS = [
    "{{Company;role=Seller}}",
    "{{Start;type=date;role=Seller}}",
    "{{Seller signature;type=signature;role=Seller}}",
]
BUYER_TAGS = [
    "{{Full name;role=Buyer}}",
    "{{Price;type=number;role=Buyer;format=usd;min=1}}",
    "{{Terms;type=checkbox;role=Buyer}}",
    "{{Colour;type=select;role=Buyer;options=Red,Green,Blue;required=false}}",
    "{{Buyer signature;type=signature;role=Buyer}}",
]


class Api(Protocol):
    """Whatever calls the API with a key: a suite, a tester."""

    def api(self, method: str, path: str, json: Any = None) -> Any: ...


class Pages(Protocol):
    """Whatever a signer's page is reached through: a suite, one that is asked again, one tablet for several."""

    def page(self, method: str, path: str, json: Any = None) -> Any: ...


def agreement_pdf(lines: list[str] | None = None) -> bytes:
    """A one-page PDF (A4) with a line of text for each of ``lines``, by default the tags of both roles."""
    lines = lines if lines is not None else ["Agreement between two parties", *SELLER_TAGS, *BUYER_TAGS]
    pdf = pikepdf.new()
    font = pdf.make_indirect(
        pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica)
    )
    pdf.add_blank_page(page_size=(595, 842))
    page = pdf.pages[0]
    page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=font))
    text = b"".join(
        b"BT /F1 11 Tf 60 %d Td (%s) Tj ET\n" % (770 - 60 * number, line.encode("latin-1"))
        for number, line in enumerate(lines)
    )
    page.Contents = pdf.make_stream(text)
    output = io.BytesIO()
    pdf.save(output, static_id=True)
    return output.getvalue()


SELLER_VALUES: dict[str, Any] = {"Company": "Wörner & Søn", "Start": "2026-03-04"}
BUYER_VALUES: dict[str, Any] = {"Full name": "Zoë Łukasz Ångström", "Price": 1234.5, "Terms": True, "Colour": "Green"}


def send(suite: Api, template_id: int, **more: Any) -> list[dict[str, Any]]:
    """A submission to a seller and a buyer; the array of submitters."""
    submitters = [
        {"role": "Seller", "email": "seller@example.com", "name": "Sam Seller"},
        {"role": "Buyer", "email": "buyer@example.com", "name": "Bo Buyer"},
    ]
    body = {"template_id": template_id, "submitters": submitters, **more}
    created: list[dict[str, Any]] = suite.api("POST", "/submissions", body)
    return created


def form(suite: Pages, slug: str) -> dict[str, Any]:
    read: dict[str, Any] = suite.page("GET", f"/s/{slug}/form")
    return read


def filled(suite: Pages, slug: str, values: dict[str, Any]) -> dict[str, Any]:
    """Values by field uuid for ``values`` by name, and a typed signature for each signature field."""
    result: dict[str, Any] = {}
    for field in form(suite, slug)["fields"]:
        if field["mine"] and field["name"] in values:
            result[field["uuid"]] = values[field["name"]]
        elif field["mine"] and field["type"] in ("signature", "initials"):
            typed = {"text": "Bo Buyer", "type": field["type"], "request_id": str(uuid.uuid4())}
            result[field["uuid"]] = suite.page("POST", f"/s/{slug}/typed_signature", typed)["uuid"]
    return result


def fill(suite: Pages, slug: str, values: dict[str, Any]) -> dict[str, Any]:
    """What the browser does before Complete is pressed: view, fill in. The body that completes."""
    suite.page("POST", f"/s/{slug}/view", {"time_zone": "Europe/Copenhagen"})
    return {"values": filled(suite, slug, values), "request_id": str(uuid.uuid4())}


def sign(suite: Pages, slug: str, values: dict[str, Any]) -> dict[str, Any]:
    """What the browser does: view, fill in, complete."""
    done: dict[str, Any] = suite.page("POST", f"/s/{slug}/complete", fill(suite, slug, values))
    return done

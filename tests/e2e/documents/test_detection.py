"""Fields that are detected in plain documents: tried, made, looked at, and put onto a template that is there."""

import base64
import io
from collections import Counter
from typing import Any

import requests
from PIL import Image

from tests.support.files.plain_forms import (
    WORDINGS,
    drawn_agreement,
    expected,
    laid_out_agreement,
    typed_agreement,
)
from tests.support.services.suite import RunningSuite

GERMAN = WORDINGS["de"]
DETECT = {"detect_fields": "true"}


def document(data: bytes, **more: Any) -> dict[str, Any]:
    return {"name": "mietvertrag", "file": base64.b64encode(data).decode(), **more}


def kinds(fields: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Names, without the number of those that are there twice, and types."""
    return Counter((one["name"].removesuffix(" 2"), one["type"]) for one in fields)


def picture(url: str) -> Image.Image:
    answer = requests.get(url, timeout=120)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    return Image.open(io.BytesIO(answer.content)).convert("RGB")


def test_a_plain_agreement_is_tried_made_and_looked_at(suite: RunningSuite) -> None:
    body = {"documents": [document(drawn_agreement(GERMAN))], "name": "Detected"}
    # Without the parameter nothing is as it was not before.
    plain = suite.api("POST", "/templates/pdf", body)
    assert plain["fields"] == []
    assert "detected" not in suite.api("POST", "/templates/pdf", body, params={"dry_run": "true"})

    tried = suite.api("POST", "/templates/pdf", body, params={"dry_run": "true", **DETECT})
    assert kinds(tried["detected"]) == kinds(tried["fields"]) == Counter(expected(GERMAN))
    assert all(one["reason"] and one["confidence"] >= 0.8 for one in tried["detected"])
    (shown,) = tried["documents"][0]["pictures"]
    assert shown["page"] == 1
    assert len(picture(shown["url"]).getcolors(1 << 20) or ()) > 50  # boxes in the colours of the roles

    # Of what is looked at, only what is sure enough is taken.
    sure = suite.api("POST", "/templates/pdf", body, params={**DETECT, "min_confidence": "0.97"})
    made = suite.api("POST", "/templates/pdf", body, params={**DETECT, "min_confidence": "0.5"})
    assert len(sure["fields"]) < len(made["fields"]) == len(tried["fields"])
    assert made["roles"] == [GERMAN.first, GERMAN.second]
    told = [one["message"] for one in made["report"] if one["code"] == "field_detected"]
    assert f"The text field “{GERMAN.name}” was detected: line after “{GERMAN.name}” (confidence 0.97)." in told
    refused = suite.api("POST", "/templates/pdf", body, params={**DETECT, "min_confidence": "2"}, status=422)
    assert refused["details"][0]["field"] == "min_confidence"

    # A template that is there: proposals, and nothing changes; what has a field is not proposed again.
    path = f"/templates/{plain['id']}"
    proposed = suite.api("GET", f"{path}/detected_fields")
    assert kinds(proposed["fields"]) == Counter(expected(GERMAN))
    assert suite.api("GET", path)["fields"] == []
    assert suite.api("GET", f"/templates/{made['id']}/detected_fields")["fields"] == []
    (pictures,) = (one["pictures"] for one in proposed["documents"])
    assert picture(pictures[0]["url"]).tobytes() != picture(plain["documents"][0]["preview_image_url"]).tobytes()
    changed = suite.api("PUT", path, {"fields": proposed["fields"][:2]})
    assert [one["name"] for one in changed["fields"]] == [GERMAN.name, GERMAN.address]
    assert len(suite.api("GET", f"{path}/detected_fields")["fields"]) == len(proposed["fields"]) - 2
    suite.api("GET", "/templates/999999999/detected_fields", status=404)


def test_word_and_html(suite: RunningSuite) -> None:
    wording = WORDINGS["pl"]
    least = {**DETECT, "min_confidence": "0.8"}
    html = suite.api("POST", "/templates/html", {"html": laid_out_agreement(wording)}, params=least)
    assert kinds(html["fields"]) == Counter(expected(wording))
    word = {"documents": [{**document(typed_agreement(wording)), "name": "umowa.docx"}]}
    docx = suite.api("POST", "/templates/docx", word, params=least)
    assert kinds(docx["fields"]) == Counter(expected(wording))


def test_fields_that_are_given_keep_their_places(suite: RunningSuite) -> None:
    given = {
        "name": GERMAN.name,
        "type": "text",
        "role": "Gast",
        "areas": [{"x": 150, "y": 125, "w": 370, "h": 20, "page": 1}],
    }
    body = {"documents": [document(drawn_agreement(GERMAN), fields=[given])]}
    made = suite.api("POST", "/templates/pdf", body, params=DETECT)
    names = [one["name"] for one in made["fields"]]
    assert names.count(GERMAN.name) == 1
    assert len(names) == len(expected(GERMAN))
    assert made["roles"][0] == "Gast"

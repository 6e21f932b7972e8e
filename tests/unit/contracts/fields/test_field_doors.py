"""The same setting of a field at every door: JSON of a template, an override of a submission, and tags in PDF, HTML and DOCX.

What the JSON of a template and an override say is stored or refused in the same words. Tags differ on purpose, as ``Input``
says: they are words in a document, so what cannot be is left out of the field and reported, and the document is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.problems import Problems
from contracts.rpc.rendering import TagField
from contracts.rpc.submissions.api import FieldOverride
from contracts.rpc.templates import FieldInput
from contracts.types import Area, FieldDefinition, PageSize, Party
from services.rendering.jobs.docx import preparing as docx_preparing
from services.rendering.jobs.html import convert
from services.rendering.jobs.tags.grammar import parse_tag
from services.submissions.rules import overrides
from services.templates.rules.domain import DocumentFields, Limits, define, redefine
from tests.support.files import docx_files, pdf_files
from tests.support.rendering.tags import take

LETTER = PageSize(width=612, height=792)
OPTIONS = ["A", "B"]
CHOICES = ("select", "radio", "multiple")
SETTINGS = ("validation", "preferences", "default_value")


@dataclass(frozen=True)
class Input:
    """What is said of a field of the type ``kind``, and what becomes of it.

    ``refused`` is how the reason begins, of the setting ``at``; else ``kept`` is stored. ``tag`` are the attributes that say the
    same in a document (None: tags have no words for it), ``tag_kept`` is what they make where that is something else.
    """

    kind: str
    said: Mapping[str, Any]
    kept: Mapping[str, Any] = field(default_factory=dict)
    at: str = ""
    refused: str = ""
    tag: str | None = None
    tag_kept: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        return f"{self.kind} {self.said}"


def rules(kind: str, tag: str | None = None, kept: Mapping[str, Any] | None = None, /, **said: Any) -> Input:
    """Rules that are kept, as they are or as ``kept``."""
    return Input(kind, {"validation": said}, {"validation": said if kept is None else kept}, tag=tag)


def look(kind: str, tag: str | None, key: str, value: Any, kept: Any = ...) -> Input:
    """A preference that is kept, as it is or as ``kept``; dropped where that is None."""
    stored = value if kept is ... else kept
    return Input(kind, {"preferences": {key: value}}, {} if stored is None else {"preferences": {key: stored}}, tag=tag)


def default(kind: str, tag: str | None, value: Any, kept: Any = ...) -> Input:
    return Input(kind, {"default_value": value}, {"default_value": value if kept is ... else kept}, tag=tag)


def no_rule(
    kind: str, tag: str | None, at: str, reason: str, /, left: Mapping[str, Any] | None = None, **said: Any
) -> Input:
    tag_kept = {"validation": left} if left else None
    return Input(kind, {"validation": said}, at=f"validation.{at}", refused=reason, tag=tag, tag_kept=tag_kept)


def no_look(kind: str, tag: str | None, key: str, value: Any, reason: str) -> Input:
    return Input(kind, {"preferences": {key: value}}, at=f"preferences.{key}", refused=reason, tag=tag)


def no_default(kind: str, tag: str | None, value: Any, reason: str, **validation: Any) -> Input:
    said = {"default_value": value} | ({"validation": validation} if validation else {})
    return Input(
        kind,
        said,
        at="default_value",
        refused=reason,
        tag=tag,
        tag_kept={"validation": validation} if validation else None,
    )


LONG = "x" * 10_001
NO_PATTERN = "must be a pattern that RE2 understands"
INPUTS = [
    # bounds
    rules("number", "min=1;max=10", min=1, max=10),
    rules("number", "min=1;max=10", {"min": 1, "max": 10}, min="1", max="10.0"),
    rules("number", "min=5;max=5", min=5, max=5),
    rules("number", "min=-0.5;max=1e3", {"min": -0.5, "max": 1000}, min="-0.5", max="1e3"),
    rules("date", "min=2026-01-01;max=2026-12-31", min="2026-01-01", max="2026-12-31"),
    rules("date", "min=01/31/2026", {"min": "2026-01-31"}, min="01/31/2026"),
    rules("date", "min=0001-01-01", min="0001-01-01"),
    rules("text", "min=1;max=2", min=1, max=2),
    rules("number", None, {}, min="", max=None),
    no_rule("number", "min=10;max=5", "max", "must not be below min", left={"min": 10}, min=10, max=5),
    no_rule("date", "min=2026-02-03;max=2026-02-02", "max", "must not be below min", left={"min": "2026-02-03"}, min="2026-02-03", max="2026-02-02"),
    no_rule("text", "min=1;max=2026-02-02", "max", "must not be below min", left={"min": 1}, min=1, max="2026-02-02"),
    no_rule("number", "min=2026-01-01", "min", "must be a number", min="2026-01-01"),
    no_rule("number", "min=low", "min", "must be a number", min="low"),
    no_rule("number", "min=1_000", "min", "must be a number", min="1_000"),
    no_rule("number", "min=nan", "min", "must be a number", min="nan"),
    no_rule("number", "min=1e300", "min", "is out of range", min=1e300),
    no_rule("number", None, "min", "must be a number", min=True),
    no_rule("date", "max=31.12.2026", "max", "must be a date as YYYY-MM-DD", max="31.12.2026"),
    no_rule("date", "max=2026-02-30", "max", "must be a date as YYYY-MM-DD", max="2026-02-30"),
    no_rule("date", "min=5", "min", "must be a date as YYYY-MM-DD", min=5),
    no_rule("text", "min=low", "min", "must be a number or a date as YYYY-MM-DD", min="low"),
    # steps
    rules("number", "step=0.01", step=0.01),
    rules("number", "step=0.5", {"step": 0.5}, step="0.5"),
    rules("number", "max=5;step=3", max=5, step=3),
    no_rule("number", "step=0", "step", "must be above 0", step=0),
    no_rule("number", "step=-1", "step", "must be above 0", step=-1),
    no_rule("number", "step=any", "step", "must be a number", step="any"),
    no_rule("number", None, "step", "must leave a number to choose", max=-(2**53), step=7),
    # patterns: whether one can be used only RE2 knows, which templates have, so that a wrong one refuses the document
    rules("text", "pattern=[A-Z]{2};message=Two", pattern="[A-Z]{2}", message="Two"),
    rules("phone", "pattern=\\+43.*", pattern="\\+43.*"),
    no_rule("text", None, "pattern", NO_PATTERN, pattern="(unclosed"),
    no_rule("text", None, "pattern", NO_PATTERN, pattern="(?=look)ahead"),
    no_rule("text", None, "pattern", NO_PATTERN, pattern="(a)\\1"),
    no_rule("text", None, "pattern", NO_PATTERN, pattern="a)(b"),
    no_rule("text", None, "pattern", "must match some text", pattern="^$"),
    no_rule("text", None, "pattern", "must match some text", pattern="[^\\x00-\\x{10FFFF}]"),
    no_rule("cells", None, "pattern", "must match some text", pattern="()"),
    no_rule("phone", None, "pattern", "must match phone numbers", pattern="0[0-9]+"),
    no_rule("phone", None, "pattern", "must match phone numbers", pattern="[a-z]+"),
    no_rule("text", f"pattern={'a' * 257}", "pattern", "must not be longer than 256", pattern="a" * 257),
    no_rule("text", None, "pattern", "must be text", pattern=5),
    no_rule("text", None, "message", "must not be longer than 10000", message=LONG),
    no_rule("text", None, "message", "must be text", message=5),
    # looks
    look("text", "font_size=10.5", "font_size", "10.5", 10.5),
    look("text", "font=times", "font", "times", "Times"),
    look("text", "font_type=bold", "font_type", "bold"),
    look("text", "color=#FE9", "color", "#FE9", "#fe9"),
    look("text", "align=RIGHT", "align", "RIGHT", "right"),
    look("text", "hidden=yes", "hidden", "yes", True),
    look("text", "mask=-4", "mask", -4),
    look("text", "mask=true", "mask", "true", True),
    look("text", "mask=255", "mask", "255", 255),
    look("text", None, "unheard_of", 1, None),
    no_look("text", "mask=5000", "mask", 5000, "must be true, false or a whole number"),
    no_look("text", None, "mask", 1.5, "must be true, false or a whole number"),
    no_look("text", "mask=most", "mask", "most", "must be true or false"),
    no_look("text", "font_size=3.9", "font_size", 3.9, "must be between 4 and 144"),
    no_look("text", None, "font_size", True, "must be a number"),
    no_look("text", "font=Comic", "font", "Comic", "must be one of Times"),
    no_look("text", "color=mauve", "color", "mauve", "must be black"),
    no_look("text", "align=middle", "align", "middle", "must be one of left"),
    no_look("text", None, "align", 3, "must be one of left"),
    no_look("text", "hidden=maybe", "hidden", "maybe", "must be true or false"),
    # preferences of one type; what does not belong to the type has no effect and is dropped
    look("number", "format=usd", "format", "USD", "usd"),
    look("date", "format=DD.MM.YYYY", "format", "DD.MM.YYYY"),
    look("signature", "format=drawn", "format", "Drawn", "drawn"),
    look("text", "format=usd", "format", "usd", None),
    look("signature", "reasons=I agree, I was there", "reasons", ["I agree", "I was there"]),
    look("signature", "reasons=I agree", "reasons", [" I agree "], ["I agree"]),
    look("payment", "price=9.5", "price", "9.5", 9.5),
    look("payment", "currency=eur", "currency", "eur", "EUR"),
    look("payment", "payment_url=https://pay.example/1", "payment_url", " https://pay.example/1 ", "https://pay.example/1"),
    look("text", "price=9.5", "price", 9.5, None),
    look("phone", "one_time_code=true", "one_time_code", True),
    look("verification", "method=QES", "method", "QES", "qes"),
    look("text", "position=background", "position", "background", None),
    look("text", "one_time_code=false", "one_time_code", False, None),
    no_look("number", "format=gulden", "format", "gulden", "must be one of usd"),
    no_look("date", "format=hello", "format", "hello", "must be a date format"),
    no_look("date", "format=[on]", "format", "[on]", "must be a date format"),
    no_look("signature", "format=DD/MM/YYYY", "format", "DD/MM/YYYY", "must be one of drawn"),
    no_look("signature", None, "reasons", [""], "must be a list of at most 50"),
    no_look("signature", None, "reasons", [" "], "must be a list of at most 50"),
    no_look("signature", f"reasons={'x' * 256}", "reasons", ["x" * 256], "must be a list of at most 50"),
    no_look("signature", None, "reasons", "Approved", "must be a list of at most 50"),
    no_look("payment", "price=-1", "price", -1, "must not be below 0"),
    no_look("payment", "currency=XXX", "currency", "XXX", "must be one of USD"),
    no_look("payment", "payment_url=javascript:alert(1)", "payment_url", "javascript:alert(1)", "is not a valid http or https URL"),
    no_look("payment", "payment_url=https://a:b/", "payment_url", "https://a:b/", "is not a valid http or https URL"),
    no_look("verification", "method=seal", "method", "seal", "must be one of aes"),
    no_look("text", "one_time_code=true", "one_time_code", True, "is for phone fields only"),
    no_look("signature", "method=qes", "method", "qes", "is for verification fields only"),
    # formulas: tags are taken as they are written, and refused where the template is made
    look("number", "formula=1 + 2", "formula", "1 + 2"),
    look("text", None, "condition", "1 < 2"),
    look("text", "required_if=1 < 2", "required_if", "1 < 2"),
    no_look("number", None, "formula", "1 +", "ends too early"),
    no_look("signature", None, "formula", "1", "is for number, text, cells, date, checkbox fields only"),
    no_look("text", None, "required_if", "Pets", "has 'Pets' at character 1: names of fields are written [[Pets]]"),
    # defaults
    default("text", "default=Ann", "Ann"),
    default("text", "default=for {name}", "for {name}"),
    default("number", "default=4", "4", 4),
    default("number", "default={{day}}", "{{day}}"),
    default("date", "default=2026-01-31", "2026-01-31"),
    default("date", "default=01/31/2026", "01/31/2026", "2026-01-31"),
    default("date", "default={{date}}", "{{date}}"),
    default("checkbox", "default=yes", "yes", True),
    default("select", "default=B", "B"),
    default("multiple", "default=A", "A", ["A"]),
    default("multiple", "default=B,A", ["B", "A"], ["A", "B"]),
    default("phone", "default=+1 (415) 555-0123", "+1 (415) 555-0123", "+14155550123"),
    default("heading", "default=Terms", "Terms"),
    default("strikethrough", "default=x", "x", None),
    default("dutystamp", "default=x", "x", None),
    no_default("number", "default=four", "four", "must be a number"),
    no_default("number", None, "for {{day}}", "must be a number"),
    no_default("number", "min=10;default=3", 3, "must not be below 10", min=10),
    no_default("number", "step=2;default=3", 3, "must be in steps of 2", step=2),
    no_default("date", "default=tomorrow", "tomorrow", "must be a date as YYYY-MM-DD"),
    no_default("date", "min=2026-01-01;default=2025-12-31", "2025-12-31", "must not be below 2026-01-01", min="2026-01-01"),
    no_default("checkbox", "default=perhaps", "perhaps", "must be true or false"),
    no_default("phone", "default=0664 123", "0664 123", "must be a phone number"),
    no_default("text", None, LONG, "must not be longer than 10000"),
    no_default("text", None, "a\x07b", "must not contain the character U+0007"),
    no_default("text", None, "x", "does not have the required form", pattern="[0-9]+"),
    no_default("select", None, "C", "must be one of A, B"),
    no_default("signature", "default={{name}}", "{{name}}", "must be a picture or a file, not a placeholder"),
    no_default("payment", "default=5", "5", "must be left out: a payment field takes no value"),
]  # fmt: skip


def definition(kind: str) -> FieldDefinition:
    options = OPTIONS if kind in CHOICES else []
    return FieldDefinition(uuid="f", submitter_uuid="p", role="Signer", name="F", type=kind, options=options)


def settings(made: FieldDefinition) -> dict[str, Any]:
    return {key: getattr(made, key) for key in SETTINGS if getattr(made, key) not in ({}, None)}


Answer = dict[str, Any] | list[tuple[str, str]]
"""The settings of the field that was made, or what was refused: where in the field, and why."""


def at_template(said: Mapping[str, Any], kind: str) -> Answer:
    given = FieldInput(name="F", type=kind, options=definition(kind).options, **said)
    try:
        made = redefine([given], [Party(uuid="p", name="Signer")], {"d": [LETTER]}, [], Limits())
    except ServiceError as refused:
        return [(one["field"].removeprefix("fields[0]."), one["reason"]) for one in refused.details]
    return settings(made.fields[0])


def at_override(said: Mapping[str, Any], kind: str) -> Answer:
    problems, before = Problems(), definition(kind)
    given = overrides.OverrideRequest({}, [FieldOverride(name="F", **said)], [], "")
    found = overrides.plan_overrides(given, [before], {"f": "F"}, (), problems)
    (made,) = overrides.with_expressions([found.apply(before)], {}, [found], "", problems)
    if problems:
        return [(one["field"].removeprefix("fields[0]."), one["reason"]) for one in problems.entries]
    return settings(made)


@pytest.mark.parametrize("one", INPUTS, ids=lambda one: one.id[:90])
def test_a_template_and_an_override_give_the_same_answer(one: Input) -> None:
    at_doors = [at_template(one.said, one.kind), at_override(one.said, one.kind)]
    assert at_doors[0] == at_doors[1]
    if one.refused:
        assert isinstance(at_doors[0], list)
        ((path, reason),) = at_doors[0]
        assert path == one.at
        assert reason.startswith(one.refused)
    else:
        assert at_doors[0] == {key: value for key, value in one.kept.items() if value not in ({}, None)}


def test_where_a_stamp_is_only_the_template_says() -> None:
    """It lies over or under what the document's author wrote."""
    said = {"preferences": {"position": "Background"}}
    assert at_template(said, "stamp") == {"preferences": {"position": "background"}}
    assert at_override(said, "stamp") == {}


def test_an_override_is_judged_with_what_the_template_says() -> None:
    """Neither of the two is a mistake alone; together nothing could be filled in."""
    problems, before = Problems(), definition("number")
    before.validation = {"min": 1, "max": 5}
    for index, (key, bound) in enumerate([("min", 6), ("max", 0), ("min", 5), ("max", 1)]):
        given = overrides.OverrideRequest(
            {}, [FieldOverride(name="F", validation={key: bound})], [], f"submitters[{index}]."
        )
        overrides.plan_overrides(given, [before], {"f": "F"}, (), problems)
    assert problems.entries == [
        {"field": "submitters[0].fields[0].validation.min", "reason": "must not be above max"},
        {"field": "submitters[1].fields[0].validation.max", "reason": "must not be below min"},
    ]


TAGGED = [one for one in INPUTS if one.tag is not None]


def tag_of(one: Input, number: int) -> str:
    options = f";options={','.join(OPTIONS)}" if one.kind in CHOICES else ""
    return f"{{{{F{number};type={one.kind}{options};{one.tag}}}}}"


@cache
def in_pdf() -> tuple[list[TagField], str]:
    """A page for each tag, with a line as long as it takes."""
    pages = [pdf_files.line(tag_of(one, number), x=2, size=4) for number, one in enumerate(TAGGED)]
    prepared = take(pdf_files.document(*pages))
    return prepared.fields, " ".join(notice.message for notice in prepared.report)


@cache
def in_html() -> tuple[list[TagField], str]:
    elements = []
    for number, one in enumerate(TAGGED):
        options = {"options": ",".join(OPTIONS)} if one.kind in CHOICES else {}
        said = dict(part.split("=", 1) for part in str(one.tag).split(";"))
        words = " ".join(f'{key}="{escape(value)}"' for key, value in {"name": f"F{number}", **options, **said}.items())
        elements.append(f"<p><{one.kind}-field {words} style='width: 80px; height: 10px'></{one.kind}-field></p>")
    converted = convert.html_to_pdf("".join(elements))
    return converted[1], " ".join(notice.message for notice in converted[2])


@cache
def in_docx() -> tuple[list[TagField], str]:
    paragraphs = "".join(docx_files.paragraph(tag_of(one, number)) for number, one in enumerate(TAGGED))
    tags = docx_preparing.prepare_docx(docx_files.docx(paragraphs), None, name="x", most_bytes=2**24).tags
    parsed = [parse_tag(tag.text) for tag in tags]
    area = Area(x=0, y=0, w=0.1, h=0.1, page=1)
    return [one.tag.to_field(area) for one in parsed], " ".join(remark for one in parsed for remark in one.remarks)


DOORS = {"pdf": in_pdf, "html": in_html, "docx": in_docx}


@pytest.mark.parametrize("door", DOORS)
def test_tags_give_the_same_fields_or_say_what_they_left_out(door: str) -> None:
    fields, report = DOORS[door]()
    by_name = {one.name: one for one in fields}
    differ = {}
    for number, one in enumerate(TAGGED):
        if door == "docx" and "{" in str(one.tag):
            continue  # Braces within braces are read on the page that LibreOffice makes.
        found = by_name[f"F{number}"]
        document = DocumentFields(
            "d", "contract", "documents[0]", "file", [LETTER], tag_fields=[found.model_copy(update={"areas": []})]
        )
        made = settings(define([document], Limits()).fields[0])
        wanted = one.kept if not one.refused else one.tag_kept or {}
        if made != {key: value for key, value in wanted.items() if value not in ({}, None)}:
            differ[one.id] = made
        assert one.refused in report, one.id
    assert differ == {}

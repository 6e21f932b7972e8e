"""The READMEs stay true: their tables are compared with the code. Every setting, call and event is documented."""

import importlib
import json
import re
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageFilter

from contracts import events
from contracts.errors import STATUS, ServiceError
from contracts.fields import checker
from contracts.fields import values as field_values
from contracts.problems import Problems
from contracts.rpc import (  # noqa: F401 - all calls register
    REGISTRY,
    health,
    notifications,
    operating,
    rendering,
    submissions,
    templates,
    webhooks,
)
from contracts.rpc import events as event_calls  # noqa: F401 - they register
from contracts.runtime.bus.marks import subscriptions_of
from contracts.runtime.settings import ServiceSettings
from contracts.types import Area, FieldContent, FieldType
from docs.programs import make_fields, make_signatures
from docs.programs.field_specimens import ATTRIBUTES, LEFT_OUT, NO_TAGS, REFUSED, TYPES, WAYS, Fault, Specimen, Ways
from services.gateway.http import errors
from services.gateway.http.openapi import specification
from services.rendering.jobs.docx import package, preparing
from services.rendering.jobs.forms import fields
from services.rendering.jobs.html import convert
from services.rendering.jobs.intake import preflight
from services.rendering.jobs.intake import preparing as intake
from services.rendering.jobs.tags import grammar, values
from services.rendering.jobs.tags.grammar import parse_tag
from services.rendering.jobs.text.fonts import HANDS
from services.webhooks.domain import EVENTS, subscribed
from tests.support.files import docx_files
from tests.support.judges.documents.pixels import brightest

SPECIMENS = [one for one in (*TYPES, *ATTRIBUTES) if one.lines]
ROOT = Path(__file__).resolve().parents[3]
WORKERS = ["templates", "submissions", "rendering", "notifications", "webhooks"]
SERVICES = [*WORKERS, "gateway"]


NOT_ON_THE_PAGE = {
    "must not have more than",
    "must not be longer than",
    "must be a URL: give pictures of one submission in submitters[].fields",
    "must be a URL, base64 or text shorter than 60 characters",
    "must be one picture",
    "must be the uuid of an attachment",  # these are said of values, to who gives them
    "must be of the years",
    "must not contain the character U+",
}


def first_column(text: str, heading: str) -> list[str]:
    """The names in backticks in the first column of the tables that are headed ``| heading |``."""
    return [name for name, _ in first_columns(text, heading)]


def first_columns(text: str, heading: str) -> list[tuple[str, str]]:
    """Each of these names with what stands beside it."""
    names: list[tuple[str, str]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
        elif line.split("|")[1].strip() == heading:
            inside = True
        elif inside:
            _, cell, beside, *_ = line.split("|")
            names += [(name, beside.strip()) for name in re.findall(r"`([^`]+)`", cell)]
    return names


def readme(service: str) -> str:
    return (ROOT / "services" / service / "README.md").read_text()


def environment_names(settings: type[ServiceSettings]) -> set[str]:
    return {str(field.validation_alias or name).upper() for name, field in settings.model_fields.items()}


@pytest.mark.parametrize("service", WORKERS)
def test_every_call_is_in_the_readme(service: str) -> None:
    calls = {rpc.method for rpc in REGISTRY.values() if rpc.service == service}
    assert sorted(first_column(readme(service), "RPC")) == sorted(calls), "each once"


@pytest.mark.parametrize("service", WORKERS)
def test_every_event_is_in_the_readme(service: str) -> None:
    module = importlib.import_module(f"services.{service}.service")
    (served,) = [
        value for value in vars(module).values() if isinstance(value, type) and getattr(value, "name", "") == service
    ]
    taken = {event.type for event in subscriptions_of(served).values()}
    emitted = {event.type for event in events.REGISTRY.values() if event.source == service}
    assert set(first_column(readme(service), "Event in")) == taken
    assert set(first_column(readme(service), "Event out")) == emitted


def test_the_readme_of_webhooks_says_which_events_a_webhook_gets_that_names_none() -> None:
    told = dict(first_columns(readme("webhooks"), "Event in"))
    unnamed = {event for event in EVENTS if told[event].endswith("that name it or no event at all")}
    assert {event for event in EVENTS if told[event].endswith("that name it")} == set(EVENTS) - unnamed
    assert unnamed == set(subscribed(None))


def test_every_event_of_the_gateway_is_in_its_readme() -> None:
    emitted = {event.type for event in events.REGISTRY.values() if event.source == "gateway"}
    assert set(first_column(readme("gateway"), "Event out")) == emitted


@pytest.mark.parametrize("service", SERVICES)
def test_every_setting_is_in_the_readme_and_described(service: str) -> None:
    settings = importlib.import_module(f"services.{service}.settings").Settings
    own = environment_names(settings) - environment_names(ServiceSettings) | {f"{service.upper()}_DATABASE_URL"}
    assert set(first_column(readme(service), "Setting")) == own
    assert [name for name, field in settings.model_fields.items() if not field.description] == []


def test_every_shared_setting_is_in_the_runtime_s_readme() -> None:
    shared = environment_names(ServiceSettings) - {"DATABASE_URL"}
    assert set(first_column((ROOT / "contracts" / "README.md").read_text(), "Setting")) == shared


def test_every_secret_that_may_be_in_a_file_is_in_the_runtime_s_readme() -> None:
    told = first_columns((ROOT / "contracts" / "README.md").read_text(), "Secret")
    listed = {
        service: {name for name, whose in told if whose == "every service" or service in whose} for service in SERVICES
    }
    for service in SERVICES:
        read = importlib.import_module(f"services.{service}.settings").Settings.secrets().values()
        assert {name.replace("<SERVICE>", service.upper()) for name in listed[service]} == set(read), service


def test_every_error_code_is_documented_with_its_status() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    table = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE))
    told = specification.document()["components"]["schemas"]["ErrorCode"]["enum"]
    assert list(table) == told
    assert table == {code: str(errors.answer(ServiceError(code, "x"), "r")[0]) for code in told}
    assert set(STATUS) <= set(told)


def test_every_code_of_a_report_is_documented() -> None:
    """Codes stand in the code in two ways: as an argument, or as a key of a table of sentences."""
    rendering_ = ROOT / "services" / "rendering"
    files = [rendering_ / "children" / "tasks.py", rendering_ / "service.py", *(rendering_ / "jobs").rglob("*.py")]
    files += (ROOT / "services" / "templates").rglob("*.py")
    written = {code for file in files for code in re.findall(r'(?:code=|\bnotice\(\s*)"(\w+)"', file.read_text())}
    written |= {f"{kind}_removed" for kind in intake._REMOVED} | {code for code, _ in package._LEFT_OUT.values()}
    written |= {*fields._LEFT, *preflight._PAGES}
    text = (ROOT / "docs" / "preflight.md").read_text()
    assert sorted(first_column(text, "Code")) == sorted(written)


def test_every_event_has_somebody_who_takes_it() -> None:
    taken: set[str] = set()
    for service in WORKERS:
        module = importlib.import_module(f"services.{service}.service")
        for value in vars(module).values():
            if isinstance(value, type) and getattr(value, "name", "") == service:
                taken |= {event.type for event in subscriptions_of(value).values()}
    assert set(events.REGISTRY) - taken == set()


def test_every_type_of_field_and_every_attribute_of_a_tag_is_on_its_page() -> None:
    text = make_fields.PAGE.read_text()
    assert text == make_fields.page(), "run python -m docs.programs.make_fields"
    assert set(first_column(text, "Type")) == {kind.value for kind in FieldType}
    assert set(first_column(text, "Attribute")) == {"type", "name", *grammar.ATTRIBUTES}
    shown = {f"{make_fields._folder(one)}/{one.file}" for one in SPECIMENS}
    there = {str(path.relative_to(make_fields.FOLDER)) for path in make_fields.FOLDER.rglob("*.png")}
    assert there == shown == {path.removeprefix("fields/") for path in re.findall(r"\((fields/[^)]+)\)", text)}
    assert sum(path.stat().st_size for path in make_fields.FOLDER.rglob("*.png")) < 600_000


@pytest.mark.parametrize("one", SPECIMENS, ids=lambda one: one.file)
def test_the_pictures_of_fields_are_what_comes_out(one: Specimen) -> None:
    kept = Image.open(make_fields.FOLDER / make_fields._folder(one) / one.file).convert("RGB")
    now = make_fields.picture(one)
    assert now.size == kept.size
    changed = ImageChops.difference(now, kept).filter(ImageFilter.BoxBlur(6))
    assert max(high for _, high in changed.getextrema()) < 40, "run python -m docs.programs.make_fields"  # type: ignore[misc]


@pytest.mark.parametrize("one", WAYS, ids=lambda one: one.tag)
def test_a_field_is_the_same_in_each_way_of_writing_it(one: Ways) -> None:
    tagged = intake.prepare(make_fields.document([one.tag]), name="x").fields
    word = preparing.prepare_docx(docx_files.docx(docx_files.paragraph(one.tag)), None, name="x", most_bytes=2**24).tags
    element = convert.html_to_pdf(one.html)[1]
    typed = [parse_tag(tag.text).tag.to_field(Area(x=0, y=0, w=0.1, h=0.1, page=1)) for tag in word]
    wanted = json.loads(one.json)
    for (made,) in (tagged, typed, element):
        field = made.model_dump(mode="json")
        assert {key: field[key] for key in wanted} == wanted


@pytest.mark.parametrize("one", NO_TAGS, ids=lambda one: one.written)
def test_what_is_said_of_tags_that_are_none(one: Fault) -> None:
    with pytest.raises(grammar.NotATag, match=re.escape(one.message)):
        parse_tag(one.written[2:-2])


@pytest.mark.parametrize("one", LEFT_OUT, ids=lambda one: one.message)
def test_what_is_said_of_attributes_that_are_left_out(one: Fault) -> None:
    (remark,) = parse_tag(one.written[2:-2]).remarks
    assert remark.removeprefix("the attribute ").startswith(one.message.removeprefix("the attribute "))


@pytest.mark.parametrize("one", REFUSED, ids=lambda one: one.message)
def test_what_is_said_of_json_that_is_refused(one: Fault) -> None:
    given, problems = json.loads(one.written), Problems()
    kind = FieldType(given["type"])
    field = FieldContent(type=kind, options=checker.options(given.get("options", []), [], kind, "", problems))
    field.preferences = checker.preferences(given.get("preferences", {}), kind, "", problems)
    field.validation = checker.validation(given.get("validation", {}), field, "", problems)
    checker.default_value(given.get("default_value"), field, "", problems)
    (problem,) = problems.entries
    assert f"{problem['field']} {problem['reason']}".removeprefix(".").startswith(one.message)


def test_everything_that_is_said_of_tags_and_fields_is_explained() -> None:
    """The sentences of the code, without what is filled in, beside those of the page."""
    page = make_fields.page()
    raised = r'(?:raise (?:BadValue|NotATag)|remarks\.append|problems\.add)\(\s*(?:f?"\{?[^"]*"(?:\[[^\]]*\])?, )?f?"([^"]+)"'
    said = [
        sentence
        for module in (values, grammar, checker, field_values)
        for sentence in re.findall(raised, Path(module.__file__ or "").read_text())
    ]
    assert len(said) > 40
    for sentence in said:
        longest = max(re.split(r"[“”']?\{[^{}]*(?:\{[^}]*\})?[^}]*\}[“”']?", sentence), key=len).strip(" ,.:")
        longest = longest.removesuffix(" and was left out")
        assert longest in page or longest in NOT_ON_THE_PAGE, sentence


def test_every_hand_of_typed_signatures_is_on_its_page() -> None:
    assert make_signatures.PAGE.read_text() == make_signatures.page(), "run python -m docs.programs.make_signatures"
    assert {font for one in make_signatures.SPECIMENS for font in make_signatures.used(one.name)} >= set(HANDS)
    there = {path.stem for path in make_signatures.FOLDER.iterdir()}
    assert there == {make_signatures.STYLED, *(one.file for one in make_signatures.SPECIMENS)}


@pytest.mark.parametrize("one", [*make_signatures.SPECIMENS, None], ids=lambda one: one.file if one else "styles")
def test_the_pictures_of_typed_signatures_are_what_comes_out(one: make_signatures.Specimen | None) -> None:
    kept = Image.open(make_signatures.FOLDER / f"{one.file if one else make_signatures.STYLED}.png").convert("L")
    now = (make_signatures.picture(one) if one else make_signatures.styles()).convert("L")
    assert now.size == kept.size
    changed = ImageChops.difference(now, kept).filter(ImageFilter.BoxBlur(2))
    assert brightest(changed) < 40, "run python -m docs.programs.make_signatures"


def test_the_runbook_names_every_metric_and_no_other() -> None:
    sources = [path.read_text() for folder in ("contracts", "services") for path in (ROOT / folder).rglob("*.py")]
    made = {name for text in sources for name in re.findall(r'"((?:countersign|rendering)_[a-z_]+)",\s+"[A-Z]', text)}
    assert len(made) > 20
    said = re.findall(r"`((?:countersign|rendering)_[a-z_]+)`", (ROOT / "deploy/RUNBOOK.md").read_text())
    assert set(said) == made


def test_every_page_is_in_the_list_of_pages() -> None:
    listed = re.findall(r"\[(.+?)\]\(\1\)", (ROOT / "docs" / "README.md").read_text())
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md")

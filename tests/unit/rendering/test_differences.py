"""What is sealed is what the parties have confirmed: each change to an order is told, and nothing else is."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from contracts.blobs import BlobRef
from contracts.evidence.audit_chain import START, next_hash
from contracts.rpc.rendering import (
    FilledAttachment,
    GivenByParty,
    PartySummary,
    SealRequest,
    SignatureNote,
    ToCheck,
    TrailEvent,
)
from contracts.stored_documents import StoredDocument
from contracts.types import Account, Area, FieldDefinition, FieldType
from services.rendering.rules.differences import ROLLOUT, Known, _is_defined, accepted_in, unaccepted
from tests.support.material.stated import WITNESS, changed, confirmed, of, stated
from tests.support.rendering.drawing import area as area_at
from tests.support.rendering.drawing import field_value
from tests.support.rendering.sealing import BEGAN, trail

ANN = PartySummary(id=1, role="Seller", name="Ann Ray", status="completed")


def heading(text: str | None, *areas: Area) -> FieldDefinition:
    return FieldDefinition(
        uuid="h",
        submitter_uuid="s",
        role="Seller",
        name="H",
        type=FieldType.HEADING,
        areas=list(areas) or [area("d")],
        default_value=text,
    )


def area(document: str) -> Area:
    return Area(x=0.1, y=0.1, w=0.2, h=0.05, attachment_uuid=document)


@pytest.mark.parametrize(
    ("defined", "drawn", "same"),
    [
        ("Terms", "Terms", True),
        ("Terms", "Other terms", False),
        ("By {name}", "By Ann Ray", True),
        ("By {name}", "By Mallory", False),
        ("By {name}", "By ", False),
        ("By {{ name }}, on {date}.", "By Ann Ray, on 4 March.", True),
        ("By {name}", "Ann Ray owes everything", False),
        ("By {name} of {role}.", "By Ann Ray of Seller. And more", False),
        ("{name} {email}", "Ann Ray ", True),
        ("{name}, {name}", "Ann Ray, Ann Ray", True),
        ("{name}, {name}", ",", False),
        ("No. {id}", "No. 7", True),
        ("No. {id}", "No. 8", False),
        ("{date}{time}", "", True),
        ("{date}, {time}", "4 March", False),
        ("{{nothing}} of ours", "something else", False),
        ("On {date}.", "On 4 March. And more", False),
        ("On {date}.", "At 4 March.", False),
        ("{date} and {time} and so", "x and so", False),
        ("{date} end", " end", True),
        (None, "None", False),
        ("On {date}.", None, False),
    ],
)
def test_a_heading(defined: str | None, drawn: str | None, same: bool) -> None:
    assert _is_defined(heading(drawn), heading(defined), ANN, 7) is same


@pytest.mark.parametrize(
    ("drawn", "hidden", "same"),
    [
        (["a", "b"], [], True),
        (["a"], ["b"], True),
        (["a"], [], False),
        (["a", "b"], ["b"], False),
        (["b", "a"], [], False),
    ],
)
def test_the_places_are_those_on_the_documents_that_are_sealed(drawn: list[str], hidden: list[str], same: bool) -> None:
    defined = heading("Terms", area("a"), area("b"))
    assert _is_defined(heading("Terms", *map(area, drawn)), defined, ANN, 7, hidden) is same


# --- a whole order

BY_API = {"by": "paula@example.com"}
EVENTS: tuple[tuple[int | None, str, dict[str, Any]], ...] = (
    (None, "create_submission", BY_API),
    (1, "view_form", {}),
    (1, "complete_form", {"party": {"role": "Client", "name": "Ana", "email": "ana@example.com"}, "by": "nobody"}),
    (2, "api_complete_form", {"party": {"role": "Witness", "email": "wit@example.com", "phone": ""}, **BY_API}),
    (3, "view_form", {}),
)


def file(name: str) -> BlobRef:
    return BlobRef(key=f"test/{name}", sha256=f"hash of {name}", size=1, media_type="application/pdf")


def document(uuid: str, name: str) -> StoredDocument:
    return StoredDocument(uuid=uuid, name=name, file=file(uuid), original=file(uuid), pages=[])


def party(id_: int, role: str, minutes: int | None = None, **more: Any) -> PartySummary:
    if minutes is not None:
        more |= {"status": "completed", "completed_at": BEGAN + timedelta(minutes=minutes)}
    return PartySummary(id=id_, role=role, **{"status": "pending", **more})


COMPANY = {"field_uuid": "kind", "action": "equal", "value": "company"}


def order(condition: dict[str, Any] = COMPANY) -> SealRequest:
    """Two parties have completed, the second by the API, and a third may only look. The annex and what is on it are hidden, as
    the client is a person."""
    first, annex = area_at(0.1, 0.1, 0.4, 0.03, attachment_uuid="d0"), area("d1")
    witness = {"submitter_uuid": "s2", "role": "Witness"}

    def value(kind: str, given: Any, uuid: str, *areas: Area, **more: Any) -> Any:
        made = field_value(kind, given, *(areas or (first,)), uuid=uuid, name=uuid.capitalize(), **more)
        made.field.role = "Client"
        return made

    def of_witness(kind: str, given: Any, uuid: str) -> Any:
        made = value(kind, given, uuid, submitter=2)
        made.field = made.field.model_copy(update=witness)
        return made

    values = [
        value("text", "Ana K.", "full", first, annex),
        value("select", "person", "kind", options=["person", "company"]),
        value("signature", "a1", "signature"),
        value("file", ["a2", "a1"], "files"),
        value("number", 0, "count"),
        value("heading", None, "heading", default_value="Signed by {name} for {id}"),
        of_witness("checkbox", True, "seen"),
        of_witness("signature", "a2", "mark"),
    ]
    company = value("text", None, "company", annex).field
    defined = [one.field for one in values]
    defined += [company, value("text", None, "empty").field, of_witness("text", None, "blank").field]
    made = confirmed(
        SealRequest(
            submission_id=7,
            submission_slug="slug",
            seal_id="seal-1",
            name="Agreement",
            account=Account(),
            documents=[document("d0", "Agreement")],
            values=values,
            attachments=[
                FilledAttachment(uuid=uuid, filename=uuid, file=file(uuid), created_at=BEGAN) for uuid in ("a1", "a2")
            ],
            parties=[
                party(1, "Client", 14, name="Ana", email="ana@example.com"),
                party(2, "Witness", 21, email="wit@example.com", completed_by_api="paula@example.com"),
                party(3, "Viewer"),
            ],
            notes=[
                SignatureNote(field_uuid="signature", reason="I agree"),
                SignatureNote(field_uuid="mark"),
                SignatureNote(field_uuid="full", reason=""),
            ],
            trail=trail(EVENTS),
            created_at=BEGAN,
            completed_at=BEGAN + timedelta(minutes=21),
        ),
        {
            "d1": {
                "name": "Annex",
                "sha256": "hash of d1",
                "conditions": [condition],
            }
        },
        defined,
    )
    made = changed(made)
    made.values[0].field.areas.pop()
    made.values[5].field.default_value = "Signed by Ana for 7"
    return made


def known(request: SealRequest) -> list[Known]:
    """What rendering has taken on of an order."""
    parties = request.to_check.parties if request.to_check else []
    return [Known(one.statement, one.parts) for one in parties if one.statement is not None]


THERE = re.compile(r" \(now (?:[0-9a-f]{16}|hash of [ad]\d|gone)\)$")
CONFIRMED = known(order())


def told(request: SealRequest, statements: list[Known] = CONFIRMED, since: timedelta = -ROLLOUT) -> list[str]:
    """Without the digests of what is there, in which each ends."""
    sentences = unaccepted(request, statements, BEGAN + since)
    assert [one for one in sentences if not THERE.search(one)] == []
    return [THERE.sub("", one) for one in sentences]


def check(request: SealRequest) -> ToCheck:
    assert request.to_check is not None
    return request.to_check


def definition(request: SealRequest, uuid: str) -> dict[str, Any]:
    return next(one for one in check(request).fields if one["uuid"] == uuid)


def rechained(request: SealRequest, **changes: Any) -> None:
    """The last line but one changed, and the hashes of all made anew, by somebody who knows how."""
    line = next(one for one in request.trail if one.event_type == "api_complete_form")
    line.data = {**line.data, **changes}
    head = START
    for one in request.trail:
        head = one.hash = next_hash(
            head,
            submitter_id=one.submitter_id,
            event_type=one.event_type,
            occurred_at=one.occurred_at,
            data=one.data,
        )


def test_an_order_as_it_was_confirmed_has_no_differences() -> None:
    assert told(order()) == []


ANA, WIT = "Ana (Client)", "wit@example.com (Witness)"
LINE = "is not the completion of {} that was confirmed: a line up to it was changed, added or removed"
OTHERWISE = "the field {} is to be drawn otherwise than it is defined"
SIGNED = "the value of the field {} is not the one that {} signed"
NOT_GIVEN = "the value of the field {} to be drawn is not the one given"
HIDDEN = "the field {} is to be drawn, and its conditions hide it"
NOT_DRAWN = "the field {} is not to be drawn, and has a value"
DEFINED = "the field {} is not defined as it was when {} signed"
REASON = "the reason for signing to be drawn beside the field {} is not the one given"
NAMED = "{} is to be named otherwise than on the line of their completion"
NO_STATEMENT = "the completion of {} is not confirmed by any statement"
NO_LINE = "{} counts as completed, and no line of the audit trail says so"
GONE = "the completion of {} was confirmed, and they no longer count as completed"


def set_(path: str, value: Any) -> Callable[[SealRequest], None]:
    """``values[0].value``: what is reached so gets this value."""

    def attack(request: SealRequest) -> None:
        *way, last = re.findall(r"\w+", path)
        found: Any = request
        for step in way:
            found = found[int(step)] if step.isdigit() else getattr(found, step)
        setattr(found, last, value)

    return attack


def given(**values: Any) -> Callable[[SealRequest], None]:
    return lambda request: of(request).values.update(values)


def not_given(uuid: str) -> Callable[[SealRequest], None]:
    def attack(request: SealRequest) -> None:
        del of(request).values[uuid]

    return attack


def redefined(uuid: str, **changes: Any) -> Callable[[SealRequest], None]:
    return lambda request: definition(request, uuid).update(changes)


def without(path: str, number: int) -> Callable[[SealRequest], None]:
    def attack(request: SealRequest) -> None:
        del getattr(request, path)[number]

    return attack


def both(*attacks: Callable[[SealRequest], None]) -> Callable[[SealRequest], None]:
    def attack(request: SealRequest) -> None:
        for one in attacks:
            one(request)

    return attack


def draw_again(number: int, **changes: Any) -> Callable[[SealRequest], None]:
    """A value of the order drawn once more, as another field."""

    def attack(request: SealRequest) -> None:
        one = request.values[number].model_copy(deep=True)
        one.field = one.field.model_copy(update=changes)
        request.values.append(one)

    return attack


def in_documents(uuid: str, **changes: Any) -> Callable[[SealRequest], None]:
    return lambda request: check(request).documents[uuid].update(changes)


def no_longer_there(submitter: int) -> Callable[[SealRequest], None]:
    def attack(request: SealRequest) -> None:
        check(request).parties = [one for one in check(request).parties if one.submitter_id != submitter]

    return attack


@pytest.mark.parametrize(
    ("attack", "sentences"),
    [
        # the trail
        (
            set_("trail[1].event_type", "other"),
            ["the hash chain of the audit trail does not hold at line 2 (other)"],
        ),
        (
            set_("trail[2].hash", "f" * 64),
            [
                "the hash chain of the audit trail does not hold at line 3 (complete_form)",
                "the hash chain of the audit trail does not hold at line 4 (api_complete_form)",
                f"line 3 of the audit trail {LINE.format(ANA)}",
            ],
        ),
        (rechained, []),
        (
            lambda request: rechained(request, note="more"),
            [f"line 4 of the audit trail {LINE.format(WIT)}"],
        ),
        (
            lambda request: rechained(request, by="mallory@example.com"),
            [f"line 4 of the audit trail {LINE.format(WIT)}", NAMED.format(WIT)],
        ),
        (without("trail", 4), []),
        (
            lambda request: request.trail.__delitem__(slice(3, None)),
            [NO_LINE.format(WIT), f"line 4 of the audit trail {LINE.format(WIT)}"],
        ),
        # who has completed
        (
            no_longer_there(2),
            [
                GONE.format(WIT),
                "the field Seen is to be drawn for somebody else than the party whose it is",
                "the field Mark is to be drawn for somebody else than the party whose it is",
            ],
        ),
        (set_("submission_id", 8), [GONE.format(ANA), GONE.format(WIT), OTHERWISE.format("Heading")]),
        (set_("parties[2].status", "completed"), [NO_LINE.format("Viewer (Viewer)")]),
        (set_("parties[2].completed_at", BEGAN), [NO_LINE.format("Viewer (Viewer)")]),
        (
            lambda request: check(request).parties.append(GivenByParty(submitter_id=3, party_uuid="s3")),
            [NO_LINE.format("Viewer (Viewer)")],
        ),
        # who they are
        (set_("parties[0].phone", "+4312345"), [NAMED.format(ANA)]),
        (set_("parties[0].name", "Mallory"), [OTHERWISE.format("Heading"), NAMED.format("Mallory (Client)")]),
        (set_("parties[0].name", None), [OTHERWISE.format("Heading"), NAMED.format("ana@example.com (Client)")]),
        (set_("parties[0].completed_at", BEGAN), [NAMED.format(ANA)]),
        (set_("parties[0].completed_at", None), [NAMED.format(ANA)]),
        (set_("parties[0].completed_by_api", "nobody"), [NAMED.format(ANA)]),
        (set_("parties[1].completed_by_api", None), [NAMED.format(WIT)]),
        (set_("parties[0].ip", "203.0.113.9"), []),
        (set_("parties[0].phone", ""), []),
        (
            without("parties", 1),
            ["submitter 2 has completed, and is not to be named"],
        ),
        # documents
        (
            set_("documents[0].name", "Other"),
            ["the document Other that is to be sealed is not that of the order"],
        ),
        (
            set_("documents[0].file", file("d9")),
            ["the document Agreement that is to be sealed is not that of the order"],
        ),
        (
            lambda request: request.documents.append(document("d1", "Annex")),
            ["the document Annex is to be sealed, and its conditions hide it"],
        ),
        (without("documents", 0), ["the document Agreement is in the order and is not to be sealed"]),
        (
            both(in_documents("d1", sha256="hash of d9")),
            [
                f"the document Annex is not the one that {ANA} signed",
                f"the document Annex is not the one that {WIT} signed",
            ],
        ),
        (
            in_documents("d1", name="Appendix"),
            [f"name or conditions of the document d1 are not those that {who} signed with" for who in (ANA, WIT)],
        ),
        (
            lambda request: check(request).documents.update(d2={"name": "New", "sha256": "hash of d2"}),
            [
                *(f"the document New is not the one that {who} signed" for who in (ANA, WIT)),
                "the document New is in the order and is not to be sealed",
            ],
        ),
        (
            lambda request: check(request).documents.pop("d1"),
            [
                f"the document d1 is not the one that {ANA} signed",
                f"the document d1 is not the one that {WIT} signed",
                OTHERWISE.format("Full"),
            ],
        ),
        # definitions
        (
            redefined("company", required=False),
            [DEFINED.format("Company", ANA)],
        ),
        (redefined("blank", required=False), [DEFINED.format("Blank", WIT)]),
        (redefined("blank", type="cells"), [DEFINED.format("Blank", ANA), DEFINED.format("Blank", WIT)]),
        (
            lambda request: check(request).fields.append({**definition(request, "blank"), "uuid": "new", "name": ""}),
            [DEFINED.format("text new", ANA), DEFINED.format("text new", WIT)],
        ),
        (set_("values[1].field.required", False), [OTHERWISE.format("Kind")]),
        (set_("values[5].field.default_value", "Signed by Ana for 8"), [OTHERWISE.format("Heading")]),
        (set_("values[5].field.default_value", None), [OTHERWISE.format("Heading")]),
        (set_("values[0].field.areas", [area("d0"), area("d1")]), [OTHERWISE.format("Full")]),
        # values
        (set_("values[0].value", "Mallory"), [NOT_GIVEN.format("Full")]),
        (set_("values[3].value", ["a1", "a2"]), [NOT_GIVEN.format("Files")]),
        (set_("values[3].value", ["a2", 7]), [NOT_GIVEN.format("Files")]),
        (set_("values[2].value", "a2"), [NOT_GIVEN.format("Signature")]),
        (set_("values[4].value", 1), [NOT_GIVEN.format("Count")]),
        (
            set_("values[0].submitter_id", 2),
            ["the field Full is to be drawn for somebody else than the party whose it is"],
        ),
        (given(full="Mallory"), [SIGNED.format("Full", ANA), NOT_GIVEN.format("Full")]),
        (both(given(full="Mallory"), set_("values[0].value", "Mallory")), [SIGNED.format("Full", ANA)]),
        (given(empty="x"), [SIGNED.format("Empty", ANA), NOT_DRAWN.format("Empty")]),
        (given(company="x"), [SIGNED.format("Company", ANA)]),
        (not_given("count"), [SIGNED.format("Count", ANA), NOT_GIVEN.format("Count")]),
        (given(unknown="x"), [SIGNED.format("unknown", ANA)]),
        (without("values", 0), [NOT_DRAWN.format("Full")]),
        (without("values", 4), [NOT_DRAWN.format("Count")]),
        (without("values", 5), [NOT_DRAWN.format("Heading")]),
        (
            draw_again(0, uuid="company", name="Company", areas=[]),
            [NOT_GIVEN.format("Company"), HIDDEN.format("Company")],
        ),
        (
            draw_again(0, uuid="new", name=""),
            [
                OTHERWISE.format("text new"),
                "the field text new is to be drawn for somebody else than the party whose it is",
            ],
        ),
        # The annex is hidden by what is drawn as well as by what was given.
        (
            both(set_("values[1].value", "company")),
            [
                "the document Annex is in the order and is not to be sealed",
                OTHERWISE.format("Full"),
                NOT_GIVEN.format("Kind"),
            ],
        ),
        # reasons
        (set_("notes[0].reason", "I was forced to"), [REASON.format("Signature")]),
        (lambda request: of(request).reasons.update(empty="x"), [SIGNED.format("Empty", ANA)]),
        (set_("values[2].value", None), [NOT_GIVEN.format("Signature"), REASON.format("signature")]),
        (set_("notes[0].reason", None), [REASON.format("Signature")]),
        (set_("notes[1].reason", "I agree"), [REASON.format("Mark")]),
        (lambda request: request.notes.append(SignatureNote(field_uuid="x", reason="y")), [REASON.format("x")]),
        (
            lambda request: of(request).reasons.update(signature="I was forced to"),
            [SIGNED.format("Signature", ANA), REASON.format("Signature")],
        ),
        (
            lambda request: of(request, WITNESS).reasons.update(mark="I agree"),
            [SIGNED.format("Mark", WIT), REASON.format("Mark")],
        ),
    ],
)
def test_what_was_changed_is_told(attack: Callable[[SealRequest], None], sentences: list[str]) -> None:
    request = order()
    attack(request)
    assert told(request) == sentences


def without_parts(statements: list[Known]) -> list[Known]:
    return [Known(one.statement) for one in statements]


def test_without_the_parts_of_a_statement_it_is_told_that_something_differs_and_not_what() -> None:
    """They are kept until the sealing only, and could be removed."""
    request = order()
    assert told(request, without_parts(CONFIRMED)) == []
    given(full="Mallory")(request)
    redefined("company", required=False)(request)
    assert told(request, without_parts(CONFIRMED)) == [
        f"documents or definitions of fields are not those that {ANA} signed with",
        f"the values are not those that {ANA} signed",
        NOT_GIVEN.format("Full"),
    ]
    forged = order()
    given(full="Mallory")(forged)
    parts = known(forged)[0].parts
    assert parts is not None
    parts.values["full"] = "what another value would have"
    assert told(order(), [Known(CONFIRMED[0].statement, parts), CONFIRMED[1]]) == [], "the whole counts"


def test_a_completion_has_one_statement_and_no_more() -> None:
    request = order()
    second = stated(request, WITNESS).model_copy(update={"shown": "1.00"})
    assert told(request, [*CONFIRMED, Known(second, CONFIRMED[1].parts)]) == [
        f"there are 2 statements of the completion of {WIT}, and there can only be one"
    ]
    other = stated(request).model_copy(update={"submitter": 9})
    assert told(request, [*CONFIRMED, Known(other)]) == [GONE.format("submitter 9")]


def test_the_last_line_that_a_party_confirmed_must_be_there_too() -> None:
    request = order()
    later = stated(request).model_copy(update={"head": stated(request, WITNESS).line})
    assert told(request, [Known(later, CONFIRMED[0].parts), CONFIRMED[1]]) == []
    rechained(request, note="more")
    assert told(request, [Known(later, CONFIRMED[0].parts), CONFIRMED[1]]) == [
        f"line 4 of the audit trail is not the one that was confirmed when {ANA} had completed",
        f"line 4 of the audit trail {LINE.format(WIT)}",
    ]
    other = stated(order()).model_copy(update={"line": stated(order(), WITNESS).line})
    assert told(order(), [Known(other, CONFIRMED[0].parts), CONFIRMED[1]]) == [
        f"line 4 of the audit trail {LINE.format(ANA)}"
    ]
    viewed = stated(order()).model_copy(
        update={"line": stated(order()).line.model_copy(update={"number": 2, "hash": order().trail[1].hash})}
    )
    assert told(order(), [Known(viewed, CONFIRMED[0].parts), CONFIRMED[1]]) == [
        f"line 2 of the audit trail {LINE.format(ANA)}"
    ]


def test_completions_that_an_older_version_may_have_taken_need_no_statement() -> None:
    client, witness = timedelta(minutes=14), timedelta(minutes=21)
    assert told(order(), [], client - ROLLOUT) == [NO_STATEMENT.format(ANA), NO_STATEMENT.format(WIT)]
    assert told(order(), [], witness - ROLLOUT) == [NO_STATEMENT.format(WIT)]
    assert told(order(), [], witness - ROLLOUT + timedelta(seconds=1)) == []
    old = changed(order(), to_check=None)
    assert told(old, [], client - ROLLOUT) == [NO_STATEMENT.format(ANA), NO_STATEMENT.format(WIT)]
    assert told(old, []) == [NO_STATEMENT.format(ANA), NO_STATEMENT.format(WIT)]


def accepting(request: SealRequest, sentences: list[str] | None) -> SealRequest:
    data = {} if sentences is None else {"differences": sentences}
    line = TrailEvent(event_type="accept_differences", occurred_at=BEGAN, data=data, hash="")
    line.hash = next_hash(
        request.trail[-1].hash,
        submitter_id=None,
        event_type=line.event_type,
        occurred_at=BEGAN,
        data=data,
    )
    request.trail.append(line)
    return request


def test_each_sentence_ends_in_what_is_there() -> None:
    """Of a line its hash; of a completion its line and what that party has given."""
    request = order()
    rechained(request, note="more")
    (sentence,) = unaccepted(request, CONFIRMED, BEGAN)
    assert sentence.endswith(f"(now {request.trail[3].hash[:16]})")
    del request.trail[4:]
    assert unaccepted(request, CONFIRMED, BEGAN) == [sentence], "the last line has a hash as well"
    del request.trail[3:]
    assert unaccepted(request, CONFIRMED, BEGAN)[1].endswith("(now gone)")

    unconfirmed = unaccepted(order(), [], BEGAN - ROLLOUT)
    mine, others = order(), order()
    given(full="Mallory")(mine)
    of(others, WITNESS).values["seen"] = False
    assert unaccepted(mine, [], BEGAN - ROLLOUT)[0] != unconfirmed[0]
    assert unaccepted(mine, [], BEGAN - ROLLOUT)[1] == unconfirmed[1]
    assert unaccepted(others, [], BEGAN - ROLLOUT)[0] == unconfirmed[0]
    assert unaccepted(others, [], BEGAN - ROLLOUT)[1] != unconfirmed[1]


def test_what_nobody_fills_in_has_no_value_for_conditions() -> None:
    request = order({"field_uuid": "heading", "action": "not_empty"})
    request.values[5].value = "Signed by Ana for 7"
    assert told(request, known(request)) == []


def test_a_line_of_nobody_completes_nothing() -> None:
    request = order()
    line = TrailEvent(
        event_type="complete_form", occurred_at=BEGAN, data={"party": {"name": "Mallory"}}, hash=request.trail[-1].hash
    )
    request.trail.append(line)
    rechained(request)
    assert told(request) == []


def test_an_order_of_an_older_version_compares_with_nothing() -> None:
    assert told(changed(order(), to_check=None)) == [GONE.format(ANA), GONE.format(WIT)]


def test_only_an_admin_accepts() -> None:
    request = order()
    given(full="Mallory")(request)
    sentences = unaccepted(request, CONFIRMED, BEGAN)
    accepting(request, sentences).trail[-1].event_type = "view_form"
    rechained(request)
    assert accepted_in(request.trail) == []
    assert unaccepted(request, CONFIRMED, BEGAN) == sentences


def test_what_an_admin_accepted_is_that_and_nothing_that_comes_later() -> None:
    mallory, eve = order(), order()
    set_("values[0].value", "Mallory")(mallory)
    set_("values[0].value", "Eve")(eve)
    sentences = unaccepted(mallory, CONFIRMED, BEGAN)
    assert len(sentences) == 1
    assert accepted_in(accepting(mallory, sentences).trail) == sentences
    assert told(mallory) == []
    assert told(accepting(eve, sentences)) == [NOT_GIVEN.format("Full")], "the words are the same, what is there is not"
    assert told(accepting(order(), None)) == []

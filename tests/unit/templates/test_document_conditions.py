"""Documents that are there under conditions: what such conditions may name, and what becomes of them."""

from dataclasses import replace

import pytest

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc.templates import AreaInput, FieldInput
from contracts.stored_documents import StoredDocument
from contracts.types import Condition, PageSize
from services.templates.rules import document_conditions
from services.templates.rules.combining import combined, without
from services.templates.rules.document_conditions import DocumentConditions
from services.templates.rules.domain import (
    Definition,
    DocumentFields,
    Limits,
    cloned,
    define,
    extended,
    redefine,
    with_conditions,
)

LETTER = PageSize(width=612, height=792)
LIMITS = Limits()
KIND, EXTRA = "5f0c3c0e-0000-4000-8000-000000000001", "5f0c3c0e-0000-4000-8000-000000000002"


def when(uuid: str = KIND, action: str = "equal") -> Condition:
    return Condition(field_uuid=uuid, action=action, value="company")


def given(name: str, uuid: str) -> FieldInput:
    return FieldInput(name=name, uuid=uuid, areas=[AreaInput(x=0.1, y=0.1, w=0.2, h=0.05)])


def document(name: str, *fields: FieldInput, conditions: tuple[Condition, ...] = ()) -> DocumentFields:
    path = f"documents[{'ab'.index(name)}]"
    return DocumentFields(name, f"called {name}", path, "file", [LETTER], fields, conditions=conditions)


def made() -> Definition:
    annex = document("b", given("Extra", EXTRA), conditions=(when(),))
    return define([document("a", given("Kind", KIND)), annex], LIMITS)


def details(error: ServiceError) -> list[tuple[str, str]]:
    return [(one["field"], one["reason"]) for one in error.details]


def test_a_document_depends_on_a_field_of_the_request() -> None:
    assert made().conditions == {"b": [when()]}


@pytest.mark.parametrize(
    ("condition", "path", "reason"),
    [
        (when("nobody"), "documents[1].conditions[0].field_uuid", "must be the uuid of a field of the template"),
        (when(action="likes"), "documents[1].conditions[0].action", "must be one of empty, "),
        (when(EXTRA), "documents[1].conditions[0].field_uuid", "must not leave 'Extra' on no other document"),
    ],
)
def test_what_can_never_hold_is_refused(condition: Condition, path: str, reason: str) -> None:
    annex = document("b", given("Extra", EXTRA), conditions=(condition,))
    with pytest.raises(ServiceError) as refused:
        define([document("a", given("Kind", KIND)), annex], LIMITS)
    ((field, why),) = details(refused.value)
    assert field == path
    assert why.startswith(reason)


def test_fields_that_are_put_must_keep_what_a_document_depends_on() -> None:
    pages = {"a": [LETTER], "b": [LETTER]}
    kept = [DocumentConditions("b", [when()])]
    name = given("Other", EXTRA).model_copy(update={"areas": []})
    with pytest.raises(ServiceError) as refused:
        redefine([name], made().parties, pages, kept, LIMITS)
    assert details(refused.value) == [("fields", f"must keep the field {KIND}, which a document's condition names")]
    assert redefine([name], made().parties, pages, [], LIMITS).conditions == {}
    changed = with_conditions(
        made(), [DocumentConditions("a", [when(EXTRA)], "schema[0]"), DocumentConditions("b", [])]
    )
    assert changed.conditions == {"a": [when(EXTRA)]}


def test_conditions_follow_their_fields() -> None:
    copy = cloned(made(), {"a": "a2", "b": "b2"})
    kind = next(one for one in copy.fields if one.name == "Kind")
    assert copy.conditions == {"b2": [when(kind.uuid)]}
    whole = combined([made(), copy], LIMITS)
    assert whole.conditions == {"b": [when()], "b2": [when()]}, "of two fields that became one, the one that is left"
    more = extended(whole, [replace(document("a"), uuid="c")], ["a", "b", "a2", "b2", "c"], LIMITS)
    assert more.conditions == whole.conditions


def test_a_condition_on_a_field_that_stays_stays_and_nothing_is_told() -> None:
    left = without(made(), {})
    assert (left.conditions, left.notices) == ({"b": [when()]}, [])


def test_a_document_may_depend_on_a_field_without_areas() -> None:
    annex = document("b", FieldInput(name="Of the trail", uuid=EXTRA), conditions=(when(EXTRA),))
    assert define([document("a", given("Kind", KIND)), annex], LIMITS).conditions == {"b": [when(EXTRA)]}


def test_only_documents_that_depend_on_something_have_conditions() -> None:
    file = BlobRef(key="k", sha256="0" * 64, size=1, media_type="application/pdf")
    lease = StoredDocument(uuid="a", name="Lease", file=file, original=file, pages=[LETTER])
    annex = lease.model_copy(update={"uuid": "b", "conditions": [when()]})
    assert document_conditions.of([lease, annex]) == {"b": [when()]}
    assert document_conditions.conditioned([annex, lease], {"a": [when()]}) == [
        annex.model_copy(update={"conditions": []}),
        lease.model_copy(update={"conditions": [when()]}),
    ]


def test_a_condition_on_a_field_that_goes_goes_too_and_is_told() -> None:
    left = without(made(), {"a": None})
    assert left.conditions == {"b": []}
    assert [one.code for one in left.notices] == ["condition_dropped"]

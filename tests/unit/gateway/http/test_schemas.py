"""Bodies: brought into shape, accepted or refused in words that name the field; parameters likewise."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from services.gateway.http import schemas, specification
from services.gateway.http.validation import _Parameters

DOCUMENT = specification.document()


def resolved(node: Any) -> Any:
    if isinstance(node, list):
        return [resolved(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return resolved(specification._target(DOCUMENT, node["$ref"]))
    return {key: resolved(value) for key, value in node.items()}


def body_schema(name: str) -> schemas.BodySchema:
    return schemas.BodySchema(resolved(DOCUMENT["components"]["schemas"][name]))


SUBMISSION, USER = body_schema("NewSubmission"), body_schema("NewUser")
USER_CHANGE, TEMPLATE_CHANGE = body_schema("UserChange"), body_schema("TemplateChange")
SUBMITTER_CHANGE, HTML = body_schema("SubmitterChange"), body_schema("NewHtmlTemplate")


def refused(schema: schemas.BodySchema, body: Any) -> ServiceError:
    with pytest.raises(ServiceError) as found:
        schema.accept(body)
    assert found.value.code == "invalid"
    return found.value


def submission(**more: Any) -> dict[str, Any]:
    return {"template_id": 1, "submitters": [{"email": "a@example.com"}], **more}


@pytest.mark.parametrize(
    ("body", "message", "field"),
    [
        ({}, "template_id is required", "template_id"),
        ([], "body must be an Object", "body"),
        (submission(template_id="x"), "template_id must be an Integer", "template_id"),
        (submission(template_id=1.5), "template_id must be an Integer", "template_id"),
        (submission(template_id=True), "template_id must be an Integer", "template_id"),
        (submission(submitters=[]), "submitters is required", "submitters"),
        ({"template_id": 1}, "submitters is required", "submitters"),
        ({"template_id": 1, "submissions": []}, "submissions is required", "submissions"),
        (
            {"template_id": 1, "submissions": [{}]},
            "submitters is required in `submissions[0]`.",
            "submissions[0].submitters",
        ),
        (
            {"template_id": 1, "submissions": [{"submitters": [{"email": "x"}]}]},
            "email is invalid in `submissions[0].submitters[0]`.",
            "submissions[0].submitters[0].email",
        ),
        (submission(submitters={}), "submitters must be an Array", "submitters"),
        (submission(submitters=[5]), "submitters[0] must be an Object", "submitters[0]"),
        (submission(submitters=[{}] * 51), "submitters must have at most 50 entries", "submitters"),
        (submission(submitters=[{"email": "x"}]), "email is invalid in `submitters[0]`.", "submitters[0].email"),
        (submission(send_email="maybe"), "send_email must be true or false", "send_email"),
        (submission(order="x"), "order must be one of preserved, random", "order"),
        (submission(message={"subject": "a\nb"}), "subject must be one line in `message`.", "message.subject"),
        (submission(reply_to="x"), "reply_to email is invalid", "reply_to"),
        (submission(name="x" * 1001), "name is too long (maximum is 1000 characters)", "name"),
        (
            submission(submitters=[{"email": "a@example.com", "fields": [{"required": True}]}]),
            "name or uuid is required in `submitters`.",
            "submitters[0].fields[0]",
        ),
    ],
)
def test_the_first_fault_is_the_message_and_the_field_is_named(body: Any, message: str, field: str) -> None:
    error = refused(SUBMISSION, body)
    assert error.details[0]["field"] == field
    if "name or uuid" not in message:
        assert error.message == message


def test_every_fault_is_in_the_details() -> None:
    error = refused(SUBMISSION, {"submitters": [{"email": "x", "phone": "1"}, {"order": "first"}]})
    assert {detail["field"] for detail in error.details} == {
        "template_id",
        "submitters[0].email",
        "submitters[0].phone",
        "submitters[1].order",
    }


def test_numbers_and_booleans_may_be_text() -> None:
    body = submission(template_id="7", send_email="false")
    body["submitters"][0]["order"] = "1"
    taken = SUBMISSION.accept(body)
    assert (taken["template_id"], taken["send_email"], taken["submitters"][0]["order"]) == (7, False, 1)


def test_text_that_only_looks_like_a_number_stays_text() -> None:
    body = submission(name="2026", template_id="7")
    body["submitters"][0] |= {"external_id": "0012", "values": {"Code": "0012", "Yes": "true"}}
    taken = SUBMISSION.accept(body)
    assert taken["name"] == "2026"
    assert taken["submitters"][0]["external_id"] == "0012"
    assert taken["submitters"][0]["values"] == {"Code": "0012", "Yes": "true"}


def test_unknown_keys_are_left_alone() -> None:
    assert SUBMISSION.accept(submission(whatever={"a": 1}))["whatever"] == {"a": 1}


def test_a_wrapper_comes_off() -> None:
    assert SUBMISSION.accept({"submission": submission()}) == submission()
    assert USER.accept({"user": {"email": "a@example.com"}, "role": "viewer"}) == {
        "email": "a@example.com",
        "role": "viewer",
    }
    assert refused(USER, {"user": "x"}).message == "email is required"


def test_blanks_that_mean_not_given_are_left_out() -> None:
    blank = {"role": "", "name": None, "application_key": "", "external_id": "", "values": None}
    taken = SUBMISSION.accept(submission(expire_at="", submitters=[{"email": "a@example.com", **blank}]))
    assert taken == submission()
    assert USER_CHANGE.accept({"email": "", "password": None, "last_name": ""}) == {"last_name": None}
    for clearing in ("application_key", "reply_to", "name", "email", "phone", "message"):
        assert SUBMITTER_CHANGE.accept({clearing: "", "values": ""}) == {clearing: None}
        assert SUBMITTER_CHANGE.accept({clearing: None, "send_sms": None}) == {clearing: None}
    assert TEMPLATE_CHANGE.accept({"external_id": "", "name": ""}) == {"external_id": None}


def test_html_or_documents() -> None:
    for nothing in ({}, {"html": ""}, {"html": None, "documents": None}):
        assert refused(HTML, nothing).details == [{"field": "html", "reason": "is required"}]
    assert HTML.accept({"html": "", "documents": [{"html": "x"}]}) == {"documents": [{"html": "x"}]}
    assert HTML.accept({"documents": [{"html": "<p>x</p>"}]})
    assert refused(HTML, {"html": "x", "size": "A9"}).details[0]["field"] == "size"
    options = refused(TEMPLATE_CHANGE, {"fields": [{"name": "a", "type": "select", "options": ["x", None]}]})
    assert options.message == "fields[0].options[1] must be a String"


def test_a_hostile_array_is_refused_and_only_its_beginning_is_told() -> None:
    error = refused(SUBMISSION, submission(submitters=[{"fields": [{"name": 5}] * 2000}] * 50))
    assert 0 < len(error.details) <= 20
    late = refused(SUBMISSION, submission(submitters=[{"fields": [{"name": "a"}] * 1999 + [{"name": 5}]}]))
    assert late.details[0]["field"] == "submitters[0].fields[1999].name"


def arguments(operation: str, query: bytes = b"", **path: Any) -> dict[str, Any]:
    found = next(each for each in specification.operations(DOCUMENT) if each.id == operation)
    definitions = [*DOCUMENT["paths"][found.path].get("parameters", []), *found.definition.get("parameters", [])]
    return _Parameters(resolved(definitions)).accept({"query_string": query, "path_params": path})


def test_parameters_are_typed_and_have_defaults() -> None:
    assert arguments("templates.search") == {"archived": False, "limit": 10}
    assert arguments("templates.search", b"limit=7&after=3&q=a%26b&archived=true") == {
        "archived": True,
        "limit": 7,
        "after": 3,
        "q": "a&b",
    }
    assert "archived" not in arguments("submissions.search")
    assert arguments("submissions.documents", b"merge=True", id="5") == {"id": 5, "merge": True}


@pytest.mark.parametrize(("given", "used"), [("100", 100), ("101", 100), ("1000000000", 100), ("1", 1)])
def test_the_limit_is_cut(given: str, used: int) -> None:
    assert arguments("templates.search", f"limit={given}".encode())["limit"] == used


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (b"limit=0", "limit"),
        (b"limit=-1", "limit"),
        (b"limit=ten", "limit"),
        (b"limit=1.5", "limit"),
        (b"limit=", "limit"),
        (b"after=x", "after"),
        (b"archived=perhaps", "archived"),
        (b"q=%00", "q"),
        (b"q=" + b"x" * 501, "q"),
        (b"fodler=Leases", "fodler"),
        (b"status=pending", "status"),
    ],
)
def test_a_mistyped_filter_never_returns_everything(query: bytes, field: str) -> None:
    with pytest.raises(ServiceError) as found:
        arguments("templates.search", query)
    assert found.value.status == 422
    assert found.value.details[0]["field"] == field


@pytest.mark.parametrize("bad", ["0", "-1", "abc", "1.0", "9223372036854775808", "9" * 400, "1\n2", ""])
def test_an_id_that_no_record_has_is_not_found(bad: str) -> None:
    with pytest.raises(ServiceError) as found:
        arguments("templates.get", id=bad)
    assert found.value.status == 404


def test_the_query_must_be_text() -> None:
    with pytest.raises(ServiceError) as found:
        arguments("templates.search", b"q=%ff")
    assert found.value.status == 400
    with pytest.raises(ServiceError):
        arguments("templates.search", b"&".join([b"q=a"] * 101))


def test_an_answer_may_lack_what_an_older_service_does_not_know() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string"}, "required": {"type": "boolean"}},
    }
    of_request, of_answer = schemas.compile_schema(schema, request=True), schemas.compile_schema(schema, request=False)
    assert [of_request.is_valid({}), of_answer.is_valid({})] == [False, True]
    assert [one.is_valid({"a": "", "required": True}) for one in (of_request, of_answer)] == [True, True]
    assert [of_answer.is_valid(bad) for bad in ({"a": 1}, {"required": 1}, [])] == [False, False, False]

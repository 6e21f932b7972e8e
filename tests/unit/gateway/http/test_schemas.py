"""Bodies: brought into shape, accepted or refused in words that name the field; parameters likewise."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from services.gateway.http.openapi import schemas, specification
from services.gateway.http.openapi.parameters import ParametersSchema

DOCUMENT = specification.document()
SUBMISSION, USER, HTML = "NewSubmission", "NewUser", "NewHtmlTemplate"
USER_CHANGE, TEMPLATE_CHANGE, SUBMITTER_CHANGE = "UserChange", "TemplateChange", "SubmitterChange"


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


def accepted(schema: str, body: Any) -> dict[str, Any]:
    return body_schema(schema).accept(body)


def refused(schema: str, body: Any) -> ServiceError:
    with pytest.raises(ServiceError) as refusal:
        accepted(schema, body)
    assert refusal.value.code == "invalid"
    return refusal.value


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
    taken = accepted(SUBMISSION, body)
    assert (taken["template_id"], taken["send_email"], taken["submitters"][0]["order"]) == (7, False, 1)


def test_text_that_only_looks_like_a_number_stays_text() -> None:
    body = submission(name="2026", template_id="7")
    body["submitters"][0] |= {"external_id": "0012", "values": {"Code": "0012", "Yes": "true"}}
    taken = accepted(SUBMISSION, body)
    assert taken["name"] == "2026"
    assert taken["submitters"][0]["external_id"] == "0012"
    assert taken["submitters"][0]["values"] == {"Code": "0012", "Yes": "true"}


def test_unknown_keys_are_left_alone() -> None:
    assert accepted(SUBMISSION, submission(whatever={"a": 1}))["whatever"] == {"a": 1}


def test_a_wrapper_comes_off() -> None:
    assert accepted(SUBMISSION, {"submission": submission()}) == submission()
    assert accepted(USER, {"user": {"email": "a@example.com"}, "role": "viewer"}) == {
        "email": "a@example.com",
        "role": "viewer",
    }
    assert refused(USER, {"user": "x"}).message == "email is required"


def test_blanks_that_mean_not_given_are_left_out() -> None:
    blank = {"role": "", "name": None, "application_key": "", "external_id": "", "values": None}
    taken = accepted(SUBMISSION, submission(expire_at="", submitters=[{"email": "a@example.com", **blank}]))
    assert taken == submission()
    assert accepted(USER_CHANGE, {"email": "", "password": None, "last_name": ""}) == {"last_name": None}
    for clearing in ("application_key", "reply_to", "name", "email", "phone", "message"):
        assert accepted(SUBMITTER_CHANGE, {clearing: "", "values": ""}) == {clearing: None}
        assert accepted(SUBMITTER_CHANGE, {clearing: None, "send_sms": None}) == {clearing: None}
    assert accepted(TEMPLATE_CHANGE, {"external_id": "", "name": ""}) == {"external_id": None}


def test_html_or_documents() -> None:
    for nothing in ({}, {"html": ""}, {"html": None, "documents": None}):
        assert refused(HTML, nothing).details == [{"field": "html", "reason": "is required"}]
    assert accepted(HTML, {"html": "", "documents": [{"html": "x"}]}) == {"documents": [{"html": "x"}]}
    assert accepted(HTML, {"documents": [{"html": "<p>x</p>"}]})
    assert refused(HTML, {"html": "x", "size": "A9"}).details[0]["field"] == "size"
    options = refused(TEMPLATE_CHANGE, {"fields": [{"name": "a", "type": "select", "options": ["x", None]}]})
    assert options.message == "fields[0].options[1] must be a String"


def test_a_hostile_array_is_refused_and_only_its_beginning_is_told() -> None:
    error = refused(SUBMISSION, submission(submitters=[{"fields": [{"name": 5}] * 2000}] * 50))
    assert 0 < len(error.details) <= 20
    late = refused(SUBMISSION, submission(submitters=[{"fields": [{"name": "a"}] * 1999 + [{"name": 5}]}]))
    assert late.details[0]["field"] == "submitters[0].fields[1999].name"


def parameters(operation: str) -> ParametersSchema:
    definition = next(each for each in specification.operations(DOCUMENT) if each.id == operation)
    definitions = [
        *DOCUMENT["paths"][definition.path].get("parameters", []),
        *definition.definition.get("parameters", []),
    ]
    return ParametersSchema(resolved(definitions))


def arguments(operation: str, query: bytes = b"", **path: Any) -> dict[str, Any]:
    return parameters(operation).accept({"query_string": query, "path_params": path})


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


def test_a_path_that_names_no_kind_of_record_is_told_what_there_is() -> None:
    with pytest.raises(ServiceError) as refusal:
        arguments("events.form", type="signed")
    assert refusal.value.details[0]["field"] == "type"
    assert "completed" in refusal.value.message


@pytest.mark.parametrize("at", ["tomorrow", "2026-13-01"])
def test_a_filter_by_time_must_be_a_point_in_time(at: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        arguments("submitters.search", f"completed_after={at}".encode())
    assert refusal.value.message == "completed_after must be an ISO 8601 date and time"
    assert (
        arguments("submitters.search", b"completed_after=2026-11-23%2015:00")["completed_after"] == "2026-11-23 15:00"
    )


def test_an_unknown_parameter_is_told_with_those_there_are() -> None:
    with pytest.raises(ServiceError) as refusal:
        arguments("users.get", b"id=7", id="5")
    assert refusal.value.message == "Unknown query parameter id: this operation has none"
    with pytest.raises(ServiceError) as refusal:
        arguments("webhooks.search", b"%0aa=1")
    assert refusal.value.message == "Unknown query parameter \ufffda: this operation has after, before, limit"
    with pytest.raises(ServiceError) as refusal:
        arguments("users.get", b"x" * 101 + b"=1", id="5")
    assert refusal.value.details[0]["field"] == "x" * 100


def key_of(operation: str, *values: bytes) -> str | None:
    headers = [(b"host", b"example.com"), *((b"idempotency-key", value) for value in values)]
    return parameters(operation).idempotency_key({"headers": headers})


def test_an_idempotency_key_is_read_where_the_operation_has_one() -> None:
    assert key_of("templates.clone", b"order 7") == "order 7"
    assert key_of("templates.clone") is None
    assert key_of("templates.get", b"order 7") is None


@pytest.mark.parametrize("values", [(b"a", b"a"), (b"",), (b"\xe9",), (b"x" * 256,), (b"a\x00",)])
def test_a_key_that_could_be_read_in_two_ways_is_refused(values: tuple[bytes, ...]) -> None:
    with pytest.raises(ServiceError) as refusal:
        key_of("templates.clone", *values)
    assert refusal.value.details[0]["field"] == "Idempotency-Key"


def test_the_query_must_be_text() -> None:
    with pytest.raises(ServiceError) as found:
        arguments("templates.search", b"q=%ff")
    assert found.value.status == 400
    with pytest.raises(ServiceError):
        arguments("templates.search", b"&".join([b"q=a"] * 101))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("7", "integer", 7),
        (" -7 ", "number", -7),
        ("7.5", "number", 7.5),
        (".5e3", "number", 500.0),
        ("7.5", "integer", "7.5"),
        ("7,5", "number", "7,5"),
        ("1e999", "number", "1e999"),
        ("nan", "number", "nan"),
        (" TRUE ", "boolean", True),
        ("0", "boolean", False),
        ("yes", "boolean", "yes"),
        ("7", "string", "7"),
        ("7", None, "7"),
    ],
)
def test_what_a_text_stands_for(text: str, kind: str | None, value: Any) -> None:
    converted = schemas.convert(text, {"type": kind})
    assert (converted, type(converted)) == (value, type(value))
    assert schemas.convert([text], {"type": "array", "items": {"type": kind}}) == [value]
    assert schemas.convert([text], {"type": "array"}) == [text]


ONE_OF_TWO = {"type": "object", "anyOf": [{"required": ["email", "name"]}, {"required": ["phone"]}]}


def test_of_several_keys_one_of_which_is_required_the_first_is_named() -> None:
    in_words = {**ONE_OF_TWO, "x-messages": {"anyOf": "{name} or a phone is required"}}
    with pytest.raises(ServiceError) as refusal:
        schemas.BodySchema(in_words).accept({})
    assert refusal.value.message == "email or a phone is required"
    assert refusal.value.details == [{"field": "email", "reason": "or a phone is required"}]
    with pytest.raises(ServiceError) as refusal:
        schemas.BodySchema(ONE_OF_TWO).accept({})
    assert refusal.value.details == [{"field": "body", "reason": "is invalid"}]
    or_others = {
        "anyOf": [{"required": ["email"]}, {"minProperties": 2}],
        "x-messages": {"anyOf": "{name} is required"},
    }
    with pytest.raises(ServiceError) as refusal:
        schemas.BodySchema({"type": "object", **or_others}).accept({})
    assert refusal.value.details[0]["field"] == "email"
    kinds = {"anyOf": [{"type": "string"}, {"type": "array"}], "x-messages": {"anyOf": "{name} must be text or a list"}}
    with pytest.raises(ServiceError) as refusal:
        schemas.BodySchema({"type": "object", "properties": {"to": kinds}}).accept({"to": 5})
    assert refusal.value.message == "to must be text or a list"


def test_what_may_be_null_is_known_by_its_type_its_choices_or_its_alternatives() -> None:
    of_request = schemas.compile_schema(
        {
            "properties": {
                "size": {"type": "string", "nullable": True, "enum": ["A4", "A5"]},
                "paper": {"nullable": True, "enum": ["plain"]},
                "to": {"nullable": True, "anyOf": [{"type": "string"}, {"type": "array"}]},
                "name": {"type": "string"},
            }
        },
        request=True,
    )
    assert of_request.is_valid({"size": None, "paper": None, "to": None, "name": "x"})
    for bad in ({"size": "A6"}, {"paper": "torn"}, {"to": 5}, {"name": None}):
        assert not of_request.is_valid(bad)


def test_what_only_describes_is_no_rule() -> None:
    described = {"type": "object", "example": {"name": 5}, "deprecated": True, "const": 5, "maxProperties": 1}
    assert schemas.json_schema(described) == {"type": "object", "maxProperties": 1}


def test_an_answer_keeps_its_choices_and_its_dates_as_the_standard_has_them() -> None:
    schema = {
        "type": "object",
        "properties": {
            "status": {"type": "string", "nullable": True, "enum": ["sent", "opened"]},
            "at": {"type": "string", "format": "date-time"},
            "to": {"anyOf": [{"type": "object", "required": ["email"]}, {"type": "integer"}]},
        },
    }
    of_request, of_answer = schemas.compile_schema(schema, request=True), schemas.compile_schema(schema, request=False)
    good: dict[str, Any]
    for good in ({"status": None}, {"status": "sent", "at": "2026-11-23T15:00:00Z"}, {"to": {}}, {"to": 5}):
        assert of_answer.is_valid(good)
    for bad in ({"status": "lost"}, {"at": "soon"}, {"at": "2026-11-23"}, {"to": "x"}):
        assert not of_answer.is_valid(bad)
    assert [of_request.is_valid({"at": at}) for at in ("2026-11-23", "soon")] == [True, False]
    assert not of_request.is_valid({"to": {}})


def test_blanks_are_looked_for_wherever_the_schema_says_so() -> None:
    blank_items = {"type": "array", "items": {"type": "object", "x-omit-blank": ["name"]}}
    schema = {
        "type": "object",
        "x-blank-null": ["note"],
        "properties": {
            "people": blank_items,
            "note": {"type": "string", "nullable": True},
            "plain": {"type": "object"},
            "letter": {"type": "object", "x-blank-null": ["subject"], "properties": {"subject": {"nullable": True}}},
        },
    }
    body = {
        "people": [{"name": ""}, {"name": None, "role": ""}, {"name": "Ana"}],
        "note": "",
        "plain": {"name": ""},
        "letter": {"subject": "", "body": ""},
    }
    assert schemas.BodySchema(schema).accept(body) == {
        "people": [{}, {"role": ""}, {"name": "Ana"}],
        "note": None,
        "plain": {"name": ""},
        "letter": {"subject": None, "body": ""},
    }
    said = {"note": "x", "letter": {"subject": "Hello"}}
    assert schemas.BodySchema(schema).accept(said) == said
    only_below = schemas.BodySchema({"type": "object", "properties": {"people": blank_items}})
    assert only_below.accept({"people": [{"name": ""}]}) == {"people": [{}]}
    whole: Any = schemas.BodySchema(blank_items).accept([{"name": ""}, {"name": "Bo"}])
    assert whole == [{}, {"name": "Bo"}]


def test_an_answer_may_lack_what_an_older_service_does_not_know() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string"}, "required": {"type": "boolean"}},
    }
    of_request, of_answer = schemas.compile_schema(schema, request=True), schemas.compile_schema(schema, request=False)
    assert [of_request.is_valid({}), of_answer.is_valid({})] == [False, True]
    assert [one.is_valid({"a": "", "required": True}) for one in (of_request, of_answer)] == [True, True]
    bad: list[Any] = [{"a": 1}, {"required": 1}, []]
    assert [of_answer.is_valid(one) for one in bad] == [False, False, False]


def trial(schema: str, body: Any) -> tuple[dict[str, Any], list[str]]:
    """What is left of the body, and the fields that it is refused for."""
    remaining, refused = body_schema(schema).accept_for_trial(body)
    return remaining, [detail["field"] for detail in refused.details] if refused else []


def test_a_trial_goes_on_without_what_is_wrong() -> None:
    good = {"email": "a@example.com", "order": 1}
    assert trial(SUBMISSION, submission(submitters=[good])) == (submission(submitters=[good]), [])
    wrong = {
        "email": "nobody",
        "phone": "x",
        "order": "first",
        "role": 7,
        "readonly_fields": ["A", 1],
        "send_sms": True,
    }
    body = submission(submitters=[good, wrong], expire_at="soon", name="Mine")
    before = str(body)
    remaining, fields = trial(SUBMISSION, body)
    assert sorted(fields) == [
        "expire_at",
        "submitters[1].email",
        "submitters[1].order",
        "submitters[1].phone",
        "submitters[1].readonly_fields[1]",
        "submitters[1].role",
    ]
    first, second = remaining["submitters"]
    assert first == good
    assert set(second) == {"email", "phone", "role", "readonly_fields", "send_sms"}, (
        "what stands for something is there"
    )
    assert second["readonly_fields"][0] == "A", "what follows in a list keeps its place"
    assert (remaining["name"], "expire_at" in remaining) == ("Mine", False)
    assert str(body) == before


@pytest.mark.parametrize(
    "body", [[], {}, submission(template_id="x"), submission(submitters=["a"]), submission(submitters=4)]
)
def test_a_trial_of_which_too_little_is_left_is_refused_at_once(body: Any) -> None:
    with pytest.raises(ServiceError):
        trial(SUBMISSION, body)

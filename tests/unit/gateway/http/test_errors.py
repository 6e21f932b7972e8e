"""Every error is ``{error, code}`` with the right status and headers, and never says more than it should."""

import json

import pytest
from starlette.exceptions import HTTPException

from contracts.errors import STATUS, ServiceError, invalid, not_found
from services.gateway.http import errors
from services.gateway.http.openapi import specification


@pytest.mark.parametrize("code", [*STATUS, *errors._STATUS])
def test_every_code_has_its_status_and_is_documented(code: str) -> None:
    status, _, body = errors.answer(ServiceError(code, "A sentence"), "r-1")
    told = json.loads(body)
    assert status == {**STATUS, "method_not_allowed": 405, "timeout": 408, "head_too_large": 431}[code]
    assert told["code"] == code
    documented = specification.document()["components"]["schemas"]["ErrorCode"]["enum"]
    assert code in documented


def test_details_name_the_field() -> None:
    _, _, body = errors.answer(invalid("email is invalid", "submitters[0].email", "is invalid"), "r-1")
    assert json.loads(body) == {
        "error": "email is invalid",
        "code": "invalid",
        "details": [{"field": "submitters[0].email", "reason": "is invalid"}],
    }


def test_every_422_has_details() -> None:
    told = json.loads(errors.answer(ServiceError("invalid", "The delivery is still under way."), "r-1")[2])
    assert told["details"] == [{"reason": "The delivery is still under way."}]
    waiting = json.loads(errors.answer(ServiceError("rate_limited", "Wait", [{"retry_after": 17}]), "r-1")[2])
    assert waiting["details"] == [{"reason": "Wait", "retry_after": 17}]
    assert "details" not in json.loads(errors.answer(ServiceError("conflict", "Used"), "r-1")[2])


def test_404_says_so_in_the_body() -> None:
    assert json.loads(errors.answer(not_found("Template"), "r-1")[2])["status"] == 404


def test_503_and_429_say_when_to_come_back() -> None:
    assert int(errors.answer(ServiceError("unavailable", "x"), "r")[1]["Retry-After"]) > 0
    assert errors.answer(ServiceError("rate_limited", "x"), "r")[1] == {
        "Retry-After": "60",
        "RateLimit": '"requests";r=0;t=60',
    }
    told = ServiceError("rate_limited", "x", [{"retry_after": 17}])
    assert errors.answer(told, "r")[1]["Retry-After"] == "17"


def test_an_error_is_one_line() -> None:
    assert json.loads(errors.answer(ServiceError("invalid", "a\r\n  b"), "r")[2])["error"] == "a b"


def test_nothing_of_an_unforeseen_error_gets_out() -> None:
    meant = errors.as_service_error(RuntimeError("password=hunter2 at /srv/x.py"))
    status, _, body = errors.answer(meant, "r-42")
    assert status == 500
    assert json.loads(body) == {"error": "Internal error", "code": "internal", "request_id": "r-42"}


@pytest.mark.parametrize(("status", "code"), [(404, "not_found"), (405, "method_not_allowed"), (413, "too_large")])
def test_the_framework_s_errors_are_ours(status: int, code: str) -> None:
    assert errors.as_service_error(HTTPException(status)).code == code


def test_methods_of_a_path() -> None:
    methods = specification.methods_of(list(specification.operations(specification.document())), "/api")
    assert methods("/api/templates") == ["GET", "HEAD", "OPTIONS"]
    assert methods("/api/templates/7") == ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "PUT"]
    assert methods("/api/webhooks/1/deliveries/2/resend") == ["OPTIONS", "POST"]
    assert methods("/api/nowhere") == []

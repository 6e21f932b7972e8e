"""Every error as ``{error, code, details?}`` with the right status; never a stack trace."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from starlette.exceptions import HTTPException

from contracts.errors import ServiceError
from contracts.runtime.monitoring import observe
from services.gateway.http import rate_limits
from services.gateway.http.connexion_import import (
    ConnexionMiddleware,
    ConnexionRequest,
    ConnexionResponse,
    ProblemException,
    UnsupportedMediaTypeProblem,
)
from services.gateway.http.exchange import exchange_of
from services.gateway.http.openapi import ignored_keys

log = observe.logger(__name__)

RETRY_AFTER_SECONDS = 5
_MEDIA_TYPE = re.compile(r"\w+/[\w.+-]+")
_STATUS = {"method_not_allowed": 405, "timeout": 408, "head_too_large": 431}
_HTTP = {
    400: ("bad_request", "Bad request"),
    401: ("unauthenticated", "Not authenticated"),
    403: ("forbidden", "Not authorized"),
    404: ("not_found", "Not found"),
    405: ("method_not_allowed", "Method not allowed"),
    413: ("too_large", "The request is too large"),
    415: ("unsupported_media_type", "Unsupported media type"),
}


class MethodNotAllowed(ServiceError):
    """The refusal of a method, which names those that the path has (RFC 9110, 15.5.6)."""

    def __init__(self, methods: Sequence[str]) -> None:
        super().__init__("method_not_allowed", "Method not allowed")
        self.methods = methods


def add_handlers(app: ConnexionMiddleware, methods: Callable[[str], list[str]]) -> None:
    """Have Connexion answer every error of ours, of its own and of Starlette's like this.

    ``methods`` are those that a path has, for 405; Starlette knows only those of the first route that fits.
    """

    async def handler(request: ConnexionRequest, error: Exception) -> ConnexionResponse:
        exchange, refusal = exchange_of(request.scope), as_service_error(error)
        if refusal.code == "method_not_allowed":
            refusal = MethodNotAllowed(methods(request.scope["path"]))
        status, headers, body = answer(refusal, exchange.request_id)
        headers |= ignored_keys.header(exchange.ignored)
        return ConnexionResponse(status_code=status, mimetype="application/json", body=body, headers=headers)

    for kind in (ServiceError, ProblemException, HTTPException, Exception):
        app.add_error_handler(kind, handler)


def unsupported(media_types: Sequence[str]) -> ServiceError:
    """The refusal of a body of a type that the operation does not take; ``media_types`` are those that it does."""
    *earlier, last = media_types
    choice = f"{', '.join(earlier)} or {last}" if earlier else last
    return ServiceError("unsupported_media_type", f"Send the file as {choice}.")


def as_service_error(error: Exception) -> ServiceError:
    """Convert any exception to what the caller is told. One that nobody foresaw is logged here and says nothing outside."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, UnsupportedMediaTypeProblem):
        return unsupported(_MEDIA_TYPE.findall(str(error.detail).partition("expected")[2]))
    if isinstance(error, ProblemException | HTTPException) and error.status_code in _HTTP:
        return ServiceError(*_HTTP[error.status_code])
    log.error("request.failed", exc_info=(type(error), error, error.__traceback__))
    return ServiceError("internal", "Internal error")


def answer(error: ServiceError, request_id: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and JSON body."""
    status = _STATUS.get(error.code, error.status)
    body: dict[str, Any] = {"error": _one_line(error.message), "code": error.code}
    headers = {}
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = ", ".join(error.methods)
    details = error.details or ([{}] if status == 422 else [])
    if details:  # a refusal that is about no single field has its reason there all the same
        body["details"] = [detail if "reason" in detail else {**detail, "reason": body["error"]} for detail in details]
    if status == 404:
        body["status"] = 404
    if status == 500:
        body = {"error": "Internal error", "code": "internal", "request_id": request_id}
    if status == 503:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if status in (408, 431):
        headers["Connection"] = "close"  # what still comes belongs to this request
    if status == 429:
        seconds = _wait(error)
        headers |= {"Retry-After": str(seconds), **rate_limits.exhausted(error.details, seconds)}
    return status, headers, orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)


def _wait(error: ServiceError) -> int:
    """Seconds until a refused request may be repeated: ``retry_after`` in the details, else a minute (specification 8)."""
    return next((int(detail["retry_after"]) for detail in error.details if "retry_after" in detail), 60)


def _one_line(message: str) -> str:
    return re.sub(r"\s*[\r\n]\s*", " ", message)

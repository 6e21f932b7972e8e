"""Calls to providers of duty stamps: what it means for the money when they fail."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from http import HTTPStatus

from contracts.runtime.http.outbound import (
    Answer,
    OutboundFailed,
    OutboundNotCalled,
    OutboundRefused,
    OutboundUnreachable,
)
from services.rendering.providers.breaker import Open, breaker_of
from services.rendering.providers.failures import ProviderFailed

_LONGEST_MESSAGE, _MOST_READ = 300, 10_000
_LONGEST_WAIT = 3600
_SHORT_WAIT = timedelta(seconds=10)


def guarded_call(url: str, call: Callable[[], Answer], *, buys: bool) -> Answer:
    """Make a call to a provider of stamps, unless it is known to be away. Raises ProviderFailed; of a call that buys
    ``no_answer`` when nobody knows what came of it."""
    breaker = breaker_of(url)
    try:
        breaker.admit()
    except Open as error:
        after = timedelta(seconds=error.seconds)
        raise ProviderFailed(
            "unreachable", "The provider does not answer. It is tried again soon.", retryable=True, retry_after=after
        ) from error
    answer = None
    try:
        answer = call()
    except OutboundRefused as error:
        raise ProviderFailed(
            "address_refused", f"The provider cannot be called: its URL {error.reason}.", retryable=False
        ) from error
    except OutboundNotCalled as error:
        raise ProviderFailed("not_called", f"The provider {error.reason}.", retryable=True) from error
    except OutboundUnreachable as error:
        raise ProviderFailed("unreachable", f"The provider {error.reason}.", retryable=True) from error
    except OutboundFailed as error:
        code = "no_answer" if buys else "unavailable"
        raise ProviderFailed(code, f"The provider {error.reason}.", retryable=True) from error
    finally:
        if answer is None or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            breaker.failed()
        elif answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            breaker.hold((_retry_after(answer) or _SHORT_WAIT).total_seconds())
        else:
            breaker.succeeded()
    return answer


def judge(answer: Answer, *, buys: bool, secrets: Sequence[str | None]) -> None:
    """Raise ProviderFailed for a status that is none of success. A fault of theirs says nothing about whether they did it."""
    status = answer.status
    if 200 <= status < 300:
        return
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        raise ProviderFailed(
            "busy", "The provider accepts no more requests for now.", retryable=True, retry_after=_retry_after(answer)
        )
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
        code = "no_answer" if buys else "unavailable"
        raise ProviderFailed(code, f"The provider answered {status}.", retryable=True)
    shown_text = without_secrets(answer.text[:_MOST_READ], secrets)
    raise ProviderFailed("refused", f"The provider answered {status}: {shown_text}".rstrip(": "), retryable=False)


def _retry_after(answer: Answer) -> timedelta | None:
    wait = answer.headers.get("Retry-After", "")
    return timedelta(seconds=min(int(wait), _LONGEST_WAIT)) if wait.isdecimal() else None


def without_secrets(words: object, secrets: Sequence[str | None]) -> str:
    """Return what a provider says, in one short line, in which each secret that it repeats is covered."""
    text = " ".join(str(words or "").split())
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return "".join(letter for letter in text if letter.isprintable())[:_LONGEST_MESSAGE]

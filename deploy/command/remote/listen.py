"""``countersign listen``: what happens in an installation, forwarded to a program under development as webhooks would bring it.

It asks the feed, so nothing has to reach this machine from outside, and it forwards to the one address that was named.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests

from deploy.command.remote import forwarding, options, progress
from deploy.command.remote.forwarding import Event, Forwarding, Verdict
from deploy.command.remote.installation import Installation, Misused, Refused, Unreachable, plain

T = TypeVar("T")

PAGE = 100
WAIT = 30
"""Seconds for which the feed is asked to wait for an event."""
ASK_AGAIN = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds until an installation that cannot be reached is asked again."""
CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 15.0
"""What a webhook's receiver gets."""
_MOST_READ = 16_384
_CHUNK = 1024


def main(arguments: list[str]) -> int:
    """Run the command. The status is one of ``options``; Ctrl-C and SIGTERM are how it ends, with 0."""
    parser = options.parser(
        "listen",
        "Forward what happens in an installation to a program on this machine, as webhooks bring it: the same requests,"
        " in order, and signed. What was not taken is sent again until it is, also after the next start.",
    )
    parser.add_argument("--forward", required=True, metavar="URL", help="where to, such as http://localhost:3000/hook")
    parser.add_argument("--kinds", metavar="KIND,...", help="only these kinds of events; all by default")
    parser.add_argument(
        "--replay",
        metavar="FROM",
        help="begin with what was: a sequence as #4711, a time, a span such as 2h, 0 for everything, or now",
    )
    parser.add_argument("--secret", metavar="whsec_...", help="sign with this secret, and not with one of its own")
    parser.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="a header more, as `secret` of a webhook"
    )
    parser.add_argument("--once", action="store_true", help="end when there is no further event")
    parser.add_argument("--state", type=Path, metavar="FILE", help="keep in this file how far it is")
    chosen = parser.parse_args(arguments)
    try:
        installation = options.installation_of(chosen)
        begin = _checked(forwarding.beginning, chosen.replay, _now()) if chosen.replay else None
        more = dict(_checked(forwarding.header_of, header) for header in chosen.header)
        if chosen.secret:
            _checked(forwarding.key_of, chosen.secret)
        forward = receiver_of(chosen.forward)
        path = chosen.state or progress.default_path(installation.url, forward, os.environ)
        with progress.hold(path, installation.url, forward) as kept_progress, Ending() as ending:
            listener = Listener(
                Feed(installation, chosen.kinds),
                kept_progress,
                chosen.secret or kept_progress.signing_secret,
                more,
                Log(as_json=chosen.json),
                ending,
            )
            return listener.run(replay=chosen.replay is not None, begin=begin, once=chosen.once)
    except (Misused, Refused, Unreachable, OSError) as error:
        return options.tell(error, as_json=chosen.json)


def receiver_of(url: str) -> str:
    """The address to forward to, with a scheme. Raises Misused."""
    address = url.strip()
    if "://" not in address:
        address = f"http://{address}"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.fragment or any(map(str.isspace, address)):
        raise Misused("--forward must be a URL such as http://localhost:3000/hook")
    return address


class Feed:
    """``GET /events`` of an installation."""

    def __init__(self, installation: Installation, kinds: str | None) -> None:
        self.url = installation.url
        self._installation = installation
        self._kinds = {"kinds": kinds} if kinds else {}

    def page(self, after: int, *, wait: int) -> list[Event]:
        """The next events after a cursor, at most so many; empty when none came within ``wait`` seconds."""
        return self._read({"after": after, "limit": PAGE, "wait": wait, **self._kinds})[0]

    def end(self) -> int:
        """The sequence of the last event of all."""
        return self._read({"limit": 1, **self._kinds})[1]

    def cursor_before(self, moment: datetime) -> int:
        """The cursor after which the events of this moment and later come."""

        def first_after(cursor: int) -> tuple[int, datetime] | None:
            page, _ = self._read({"after": cursor, "limit": 1})
            return (page[0].sequence, datetime.fromisoformat(page[0].timestamp)) if page else None

        return forwarding.cursor_before(moment, self.end(), first_after)

    def _read(self, query: Mapping[str, Any]) -> tuple[list[Event], int]:
        data = self._installation.ask("GET", "/events", query=query, patience=WAIT + 60.0).data
        try:
            events = [forwarding.event_of(row) for row in data["data"]]
            end = data["end"]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise Refused(200, f"{self.url} has no feed of events that this version knows") from None
        if not isinstance(end, int) or not forwarding.ascending(events):
            raise Refused(200, f"{self.url} has no feed of events that this version knows")
        return events, end


class Log:
    """What the person in front of the terminal sees, or a program that reads JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def begun(self, kept_progress: progress.Progress, secret: str, cursor: int) -> None:
        """Say from where to where, and the secret that the receiver checks with."""
        if self._as_json:
            self._line(
                {"url": kept_progress.url, "forward": kept_progress.forward, "after": cursor, "signing_secret": secret}
            )
            return
        print(f"Forwarding events of {kept_progress.url} to {kept_progress.forward}, those after #{cursor}.")
        print(f"Signing secret: {secret}", flush=True)

    def attempted(self, event: Event, attempt: "Attempt", verdict: Verdict) -> None:
        """Say what came of an attempt."""
        if self._as_json:
            content = {
                "sequence": event.sequence,
                "id": event.id,
                "event_type": event.kind,
                "webhook_id": event.id,
            }
            content |= {"at": attempt.at.isoformat(), "status": attempt.status, "error": attempt.error}
            self._line({**content, "duration_ms": attempt.milliseconds, "taken": verdict.is_accepted})
            return
        result = attempt.status if attempt.status is not None else attempt.error
        again = "" if verdict.is_accepted or verdict.gone else f", again in {verdict.pause:.0f} s"
        what = plain(f"#{event.sequence} {event.kind} of {event.about}")
        at = attempt.at.astimezone().strftime("%H:%M:%S")
        print(f"{at}  POST  {result}{again}  {attempt.milliseconds} ms  {what}", flush=True)

    def away(self, reason: str, seconds: float) -> None:
        """Say that the installation does not answer."""
        if not self._as_json:
            print(f"{reason}; asked again in {seconds:.0f} s", file=sys.stderr, flush=True)

    def ended(self, cursor: int) -> None:
        """Say where the next start goes on."""
        if not self._as_json:
            print(f"Stopped after #{cursor}; the next start goes on from there.", flush=True)

    def _line(self, content: Mapping[str, Any]) -> None:
        print(json.dumps(content), flush=True)


@dataclass(frozen=True)
class Attempt:
    """One request to the receiver: the status of its answer, or why there was none."""

    at: datetime
    status: int | None
    error: str | None
    milliseconds: int
    retry_after: str | None = None


class Listener:
    """Reads the feed, forwards, and keeps how far it is."""

    def __init__(
        self,
        feed: Feed,
        kept_progress: progress.Progress,
        secret: str,
        headers: Mapping[str, str],
        log: Log,
        ending: "Ending",
    ) -> None:
        self._feed, self._progress, self._log, self._ending = feed, kept_progress, log, ending
        self._secret, self._headers = secret, headers

    def run(self, *, replay: bool, begin: int | datetime | None, once: bool) -> int:
        """Forward until it is told to end. Raises Misused and Refused."""
        try:
            cursor = self._patiently(lambda: self._cursor(replay=replay, begin=begin))
            work = Forwarding(cursor)
            work.read(
                self._patiently(lambda: self._page(cursor, wait=0))
            )  # before it is kept: there may be no such place
            self._progress.keep(cursor)
            self._log.begun(self._progress, self._secret, cursor)
            return self._follow(work, once=once)
        except KeyboardInterrupt:
            if self._progress.cursor is not None:
                self._log.ended(self._progress.cursor)
            return options.DONE

    def _follow(self, work: Forwarding, *, once: bool) -> int:
        while True:
            if (event := work.due) is None:
                page = self._patiently(lambda: self._page(work.cursor, wait=0 if once else WAIT))
                if once and not page:
                    return options.DONE
                work.read(page)
            elif not self._forwarded(work, event):
                return options.NOT_SO

    def _cursor(self, *, replay: bool, begin: int | datetime | None) -> int:
        if isinstance(begin, datetime):
            return self._feed.cursor_before(begin)
        known_cursor = begin if replay else self._progress.cursor
        return self._feed.end() if known_cursor is None else known_cursor

    def _page(self, after: int, *, wait: int) -> list[Event]:
        try:
            return self._feed.page(after, wait=wait)
        except Refused as refused:
            if any(detail.get("field") == "after" for detail in refused.details):
                raise Misused(
                    f"{self._feed.url} has no event #{after}, after which this would go on: it is another installation than"
                    " before, or was restored from a backup. Begin anew with --replay 0 (everything) or --replay now."
                ) from None
            raise

    def _forwarded(self, work: Forwarding, event: Event) -> bool:
        """Make one attempt, and wait if it has to be made again. False: the receiver wants nothing any more."""
        with self._ending.later():  # what was taken and not kept would be sent once more
            attempt = post(self._progress.forward, event, self._secret, self._headers)
            verdict = work.answered(attempt.status, attempt.retry_after, _now())
            if verdict.is_accepted:
                self._progress.keep(work.cursor)
            self._log.attempted(event, attempt, verdict)
        if verdict.gone:
            print("countersign: the receiver answers 410 (Gone): a webhook would be disabled by that.", file=sys.stderr)
            return False
        time.sleep(verdict.pause)
        return True

    def _patiently(self, read: Callable[[], T]) -> T:
        """Ask the installation until it answers."""
        failures = 0
        while True:
            try:
                return read()
            except Unreachable as error:
                seconds = error.retry_after or ASK_AGAIN[min(failures, len(ASK_AGAIN) - 1)]
                failures += 1
                self._log.away(str(error), seconds)
                time.sleep(seconds)


def post(url: str, event: Event, secret: str, headers: Mapping[str, str]) -> Attempt:
    """Make one attempt to forward an event: to this address alone, whatever it answers and the environment says."""
    began, started = _now(), time.monotonic()
    status, error, retry_after = None, None, None
    with requests.Session() as session:
        session.trust_env = False
        try:
            with session.post(
                url,
                data=event.body,
                headers={"Accept-Encoding": "identity", **forwarding.headers_of(event, secret, headers, began)},
                timeout=(CONNECT_SECONDS, TOTAL_SECONDS),
                allow_redirects=False,
                stream=True,
            ) as answer:
                _read(answer, started + TOTAL_SECONDS)
                status, retry_after = answer.status_code, answer.headers.get("Retry-After")
        except requests.Timeout:
            error = "took too long"
        except requests.RequestException as failed:
            error = f"cannot be reached: {type(failed).__name__}"
    return Attempt(began, status, error, int((time.monotonic() - started) * 1000), retry_after)


def _read(answer: requests.Response, deadline: float) -> None:
    """Take the answer off its connection: a receiver may end badly if nobody reads what it says."""
    size = 0
    for chunk in answer.iter_content(_CHUNK):
        if (size := size + len(chunk)) > _MOST_READ:
            return
        if time.monotonic() > deadline:
            raise requests.Timeout


class Ending:
    """Has SIGTERM end the listener as Ctrl-C does: at once, or behind what is not to be cut in two."""

    def __init__(self) -> None:
        self._busy = self._asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Ending":
        self._before = {number: signal.signal(number, self._end) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def later(self) -> Iterator[None]:
        """Put the end off until this is over; who asks twice does not wait."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._asked:
            raise KeyboardInterrupt

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        if not self._busy or self._asked:
            raise KeyboardInterrupt
        self._asked = True


def _checked(rule: Callable[..., T], *arguments: Any) -> T:
    try:
        return rule(*arguments)
    except ValueError as error:
        raise Misused(str(error)) from None


def _now() -> datetime:
    return datetime.now(UTC)

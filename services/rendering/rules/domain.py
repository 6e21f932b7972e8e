"""Rules of sealing: what a failure means, where files go, which level was reached; and how much is drawn at once. No database,
no clock, no files."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from contracts.rpc.rendering import FieldValue
from contracts.types import FieldType

SCHEDULE = tuple(timedelta(seconds=seconds) for seconds in (2, 10, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600))
"""Waits between the attempts of a job that cannot go on because something outside is missing: the file store, a
certificate that is in force. It ends after about a day; the operator sees it from the first failure on."""

ATTEMPTS_AT_A_FAULT = 3
"""A job whose own work fails (a crash, a time-out, an error in a library) hardly ever succeeds later: it is given up
within a quarter of a minute, with the reason, and can be asked for again."""

ARCHIVE_SCHEDULE = (
    *(timedelta(minutes=minutes) for minutes in (1, 10, 60, 360)),
    *(timedelta(days=1) for _ in range(60)),
)
"""Waits between the attempts to renew an archive time-stamp. There is time: it is begun long before the old one runs out."""

LEVELS = ("B-B", "B-T", "B-LT", "B-LTA")
"""PAdES baseline levels (EN 319 142-1), from the weakest on."""

DETECTION_RULES = 1
"""Raised when other fields are detected than before: what was kept is then detected anew."""

WAITING = "waiting"
"""The state of a seal job that waits for a provider: nothing of it is due until that is done."""

_SOON_AT_PROVIDERS = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1800))
_HOUR = timedelta(hours=1)


def schedule_at_providers(longest: timedelta) -> tuple[timedelta, ...]:
    """Waits between the attempts at a provider that does not answer, for ``longest`` in all: soon, then once an hour."""
    hours = max(0, (longest - sum(_SOON_AT_PROVIDERS, timedelta())) // _HOUR)
    return _SOON_AT_PROVIDERS + (_HOUR,) * hours


def file_key(submission_id: int, job_id: int, attempt: int, number: int) -> str:
    """Return where an attempt writes its ``number``-th file. Attempts never write to the same place, and what an interrupted
    one left behind can be found without having been noted down."""
    return f"submissions/{submission_id}/seal-{job_id}-{attempt}-{number}"


def prepared_key(submission_id: int, job_id: int, preparation: int, number: int) -> str:
    """Return where the ``number``-th document is kept, as it was prepared for a provider's signature the ``preparation``-th
    time."""
    return f"submissions/{submission_id}/prepared-{job_id}-{preparation}-{number}"


def kept_key(submission_id: int, job_id: int, revision: int, number: int) -> str:
    """Return where the ``number``-th sealed file is kept while its duty stamps are waited for, as it was sealed the
    ``revision``-th time."""
    return f"submissions/{submission_id}/kept-{job_id}-{revision}-{number}"


def leftovers(submission_id: int, job_id: int, attempts: int, files: int, results: Collection[int | None]) -> list[str]:
    """Keys that attempts may have written other than those whose files are ``results``."""
    other_attempts = (attempt for attempt in range(1, attempts + 1) if attempt not in results)
    return [file_key(submission_id, job_id, attempt, number) for attempt in other_attempts for number in range(files)]


def lowest_level(levels: Iterable[str]) -> str:
    """The level that holds for all files of a submission."""
    return min(levels, key=LEVELS.index)


def renewed_at(stamped_at: datetime, until: datetime, before: timedelta, share: float) -> datetime:
    """Return when an archive time-stamp that lasts ``until`` is renewed: ``before`` that, at the latest. Files that were
    stamped together are not renewed together: each comes up to as much earlier, as its ``share`` (0 to 1) says. Short-lived
    ones are renewed in the second half of their time, and none within a day."""
    margin = min(before, (until - stamped_at) / 4)
    return max(until - margin * (1 + share), stamped_at + timedelta(days=1))


def archive_key(submission_id: int, sha256: str) -> str:
    """Return where a version of an archived file goes. It is named by what it is, so that nothing is ever written over."""
    return f"submissions/{submission_id}/archive-{sha256}"


def gives_up(attempt: int) -> bool:
    """True when a fault of the work itself ends the job."""
    return attempt >= ATTEMPTS_AT_A_FAULT


def goes_without_time_stamp(attempt: int, allowed: int) -> bool:
    """True when a failing time-stamping authority is no longer waited for."""
    return attempt > allowed


def digest_of(*parts: Any) -> str:
    """SHA-256 in lower-case hex over JSON values: names a result by what it is made from."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def pictures_of(item: FieldValue) -> list[str]:
    """The uuids of the attachments whose pictures are drawn for a value. Of files only the names are: a signer may send
    hundreds of 25 MB each, which nobody needs to have in memory."""
    value = item.value if isinstance(item.value, list) else [item.value]
    return [] if item.field.type is FieldType.FILE else [uuid for uuid in value if isinstance(uuid, str)]


def trial_pages(count: int, most: int = 20) -> Sequence[int]:
    """Return which pages (from 1) the trial fill of a new document draws on: all of them, or some spread over it."""
    if count <= most:
        return range(1, count + 1)
    return sorted({1 + round(index * (count - 1) / (most - 1)) for index in range(most)})


def affordable(needed: Sequence[Mapping[str, int]], limit: int) -> int:
    """Return how many of the first things can be had when each needs files (their sizes by name), which are fetched once, and
    no more than ``limit`` bytes of them are to be in memory; one at least."""
    sizes: dict[str, int] = {}
    for count, files in enumerate(needed):
        sizes.update(files)
        if count and sum(sizes.values()) > limit:
            return count
    return len(needed)

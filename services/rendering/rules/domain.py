"""Rules of sealing: what a failure means, where files go, which level was reached; and how much is drawn at once. No database,
no clock, no files."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from contracts.rpc.rendering import FieldValue
from contracts.types import FieldType

SCHEDULE = tuple(timedelta(seconds=seconds) for seconds in (2, 10, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600))
"""Waits between the attempts of a job that cannot go on because something outside is missing: the file store, a
certificate that is in force. It ends after about a day; the operator sees it from the first failure on."""

ATTEMPTS_AT_A_FAULT = 3
"""A job whose own work fails (a crash, a time-out, an error in a library) hardly ever succeeds later: it is given up
within a quarter of a minute, with the reason, and can be asked for again."""

LEVELS = ("B-B", "B-T", "B-LT", "B-LTA")
"""PAdES baseline levels (EN 319 142-1), from the weakest on."""


def file_key(submission_id: int, job_id: int, attempt: int, number: int) -> str:
    """Where an attempt writes its ``number``-th file. Attempts never write to the same place, and what an interrupted one
    left behind can be found without having been noted down."""
    return f"submissions/{submission_id}/seal-{job_id}-{attempt}-{number}"


def leftovers(submission_id: int, job_id: int, attempts: int, files: int, sealed_attempt: int | None) -> list[str]:
    """Keys that attempts other than the sealed one may have written."""
    others = (attempt for attempt in range(1, attempts + 1) if attempt != sealed_attempt)
    return [file_key(submission_id, job_id, attempt, number) for attempt in others for number in range(files)]


def lowest_level(levels: Iterable[str]) -> str:
    """The level that holds for all files of a submission."""
    return min(levels, key=LEVELS.index)


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
    """Which pages (from 1) the trial fill of a new document draws on: all of them, or some spread over it."""
    if count <= most:
        return range(1, count + 1)
    return sorted({1 + round(index * (count - 1) / (most - 1)) for index in range(most)})


def affordable(needed: Sequence[Mapping[str, int]], limit: int) -> int:
    """How many of the first things can be had when each needs files (their sizes by name), which are fetched once, and no more
    than ``limit`` bytes of them are to be in memory; one at least."""
    sizes: dict[str, int] = {}
    for count, files in enumerate(needed):
        sizes.update(files)
        if count and sum(sizes.values()) > limit:
            return count
    return len(needed)

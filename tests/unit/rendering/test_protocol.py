"""What renderer and children say to each other: files beside the message, and nothing believed that is no message."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.rpc.rendering import SealRequest
from contracts.types import Account
from services.rendering.children import tasks
from services.rendering.children.pool import ChildPool, JobCrashed, JobFailed, JobRefused
from services.rendering.protocol import messages
from services.rendering.protocol.messages import OneFile, Packed, Shape, Task, TaskInTwoParts, Work, WorkInTwoParts
from tests.support.rendering.rendering_tasks import Free, run

OFFICE = Path(tasks.__file__).with_name("office.py")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildPool]:
    """Each test leaves its only child as it was, or has the pool replace it."""
    folder = tmp_path_factory.mktemp("pool")
    made = ChildPool(
        size=1, tasks="tests.support.rendering.rendering_tasks", environment={"TMPDIR": str(folder)}
    ).start()
    yield made
    made.close()


def pid(pool: ChildPool) -> int:
    return int(run(pool, "identity")[0]["pid"])


def test_every_task_is_done_by_a_function_of_its_name() -> None:
    declared = {key: task for key, task in vars(messages).items() if isinstance(task, Task)}
    assert {key: task.name for key, task in declared.items()} == {key: key.lower() for key in declared}
    done = {name for name, work in vars(tasks).items() if isinstance(work, Work | WorkInTwoParts)}
    assert {task.name for task in declared.values()} - done == {"convert"}
    # LibreOffice is loaded by importing it.
    assert "@messages.CONVERT.done_by\ndef convert(" in OFFICE.read_text()
    assert declared


def test_files_travel_beside_the_message() -> None:
    """Those in lists, in mappings and in what is inside the message as well, in whatever order they are met."""
    shape = Shape(messages.FillAndReserve)
    text = messages.SignatureText("Seal", "Tested", datetime(2026, 11, 23, tzinfo=UTC))
    material = messages.ValidationMaterial([b"certificate"], (), [b"list"])
    order = SealRequest(
        submission_id=1, submission_slug="s", name="x", account=Account(), documents=[], values=[], seal_id="secret",
        trail=[], created_at=text.signed_at, completed_at=text.signed_at,
    )  # fmt: skip
    message = messages.FillAndReserve(
        order, "d", b"\x00document\xff", [b"", b"picture"], messages.Place(text, 10, material)
    )
    packed = shape.pack(message)
    assert [bytes(part) for part in packed.parts] == [b"\x00document\xff", b"", b"picture", b"certificate", b"list"]
    assert packed.parts[0] is message.data, "not copied"
    assert "seal_id" not in json.loads(packed.payload)["request"], "a draft of it needs less than the whole order"
    back = shape.unpack(packed)
    assert (back.data, list(back.attachments)) == (message.data, [b"", b"picture"])
    assert (back.place.text, list(back.place.material.certificates)) == (text, [b"certificate"])
    assert (list(back.place.material.ocsp_responses), list(back.place.material.revocation_lists)) == ([], [b"list"])
    assets = Shape(messages.ExternalUrls)
    fetched = messages.ExternalUrls(["<p>"], {"https://a.example/1": b"one", "https://a.example/2": b"two"})
    assert assets.unpack(assets.pack(fetched)) == fetched


@pytest.mark.parametrize("place", ["1", "-1", "true", '"0"', "null", "0.0", "[]"])
def test_a_file_that_is_not_there_is_no_file(place: str) -> None:
    assert Shape(OneFile).unpack(Packed(b'{"data": 0}', [b"x"])) == OneFile(b"x")
    with pytest.raises(ValueError, match="no such part"):
        Shape(OneFile).unpack(Packed(b'{"data": %s}' % place.encode(), [b"x"]))


def test_an_answer_that_is_none_is_a_crash(pool: ChildPool) -> None:
    """A file may have taken the child over: it says what it likes, and is replaced."""
    before = pid(pool)
    with pytest.raises(JobCrashed) as caught:
        pool.run(Task("echo", Free, OneFile), Free({"data": 0}, [b"x"]))
    assert caught.value.trace == "it answered what is no answer"
    assert pid(pool) != before


def test_a_request_that_is_none_leaves_nothing_behind(tmp_path: Path) -> None:
    """What is sent later belongs to the same job; the next one would take it for itself."""
    pool = ChildPool(
        size=2, warm=2, tasks="tests.support.rendering.rendering_tasks", environment={"TMPDIR": str(tmp_path)}
    ).start()
    try:
        wrong = TaskInTwoParts("begin", list[str], Free, Free)
        for _ in range(3):
            with pytest.raises(JobFailed, match="ValidationError"):
                pool.run_ahead(wrong, ["x"], lambda: Free({"second": 2}), seconds=20, wait=30)
            assert run(pool, "echo", {"again": True}) == ({"again": True}, [])
    finally:
        pool.close()


@pytest.mark.parametrize("report", ["", "[]", "{", '{"memory": "much"}', '{"waited": null}'])
def test_a_report_that_is_none_is_a_crash(pool: ChildPool, report: str) -> None:
    before = pid(pool)
    with pytest.raises(JobCrashed) as caught:
        run(pool, "report", {"report": report})
    assert caught.value.trace == "it reported what is no report"
    assert pid(pool) != before


def test_words_that_are_no_text_are_still_a_refusal(pool: ChildPool) -> None:
    """Half of a surrogate pair, as strings in files have it, cannot be sent."""
    before = pid(pool)
    with pytest.raises(JobRefused) as caught:
        run(pool, "refuse_oddly")
    assert caught.value.reason == "The file says \\ud83d"
    assert pid(pool) == before

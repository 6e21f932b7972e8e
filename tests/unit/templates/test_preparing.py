"""Documents are prepared a few at a time; one that is refused is named, and stops the rest."""

import threading
import time
from typing import Any

import pytest

from contracts.blobs import BlobRef
from contracts.errors import ServiceError, invalid
from contracts.rpc import Rpc, rendering
from contracts.rpc.templates import CreateTemplate, DocumentChange, DocumentInput, FieldInput, HtmlDocumentInput
from contracts.runtime.monitoring import observe
from contracts.types import Actor, Notice, PageSize, Role
from services.templates.intake.preparing import Ready, prepare, sources, sources_of_changes

ACTOR = Actor(user_id=1, role=Role.ADMIN, email="a@example.com")


def blob(key: str) -> BlobRef:
    return BlobRef(key=key, sha256="0" * 64, size=1, media_type="application/pdf")


def command(*names: str, **more: Any) -> CreateTemplate:
    documents = [DocumentInput(name=name, file=blob(f"uploads/{i}")) for i, name in enumerate(names)]
    return CreateTemplate(request_id="r", actor=ACTOR, documents=documents, **more)


class Renderer:
    """Answers like rendering, but says what ``answers`` has for a document's name; counts who is there at once."""

    def __init__(self, answers: dict[str, Exception] | None = None, *, wait_for: int = 0) -> None:
        self.answers = answers or {}
        self.asked: list[Any] = []
        self.request_ids: set[str | None] = set()
        self.most_at_once = self._inside = 0
        self._lock = threading.Lock()
        self._together = threading.Barrier(wait_for) if wait_for else None

    def call(self, rpc: Rpc[Any, Any], request: Any) -> rendering.PreparedDocument:
        with self._lock:
            self.asked.append((rpc, request))
            self.request_ids.add(observe.request_id())
            self._inside += 1
            self.most_at_once = max(self.most_at_once, self._inside)
        try:
            if self._together:
                self._together.wait(timeout=120)
            if request.name in self.answers:
                raise self.answers[request.name]
            notice = Notice(code="javascript_removed", message="JavaScript was removed")
            page = PageSize(width=612, height=792)
            return rendering.PreparedDocument(file=blob("f"), original=blob("o"), pages=[page], report=[notice])
        finally:
            with self._lock:
                self._inside -= 1


def prepared(renderer: Renderer, wanted: CreateTemplate, *, concurrency: int = 2, seconds: float = 30) -> list[Ready]:
    return prepare(renderer, sources(wanted), concurrency=concurrency, seconds=seconds)


def refused(renderer: Renderer, wanted: CreateTemplate, **more: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        prepared(renderer, wanted, **more)
    return caught.value


def test_documents_are_prepared_at_once_but_not_all_of_them() -> None:
    renderer = Renderer(wait_for=3)
    ready = prepared(renderer, command(*"abcdef"), concurrency=3)
    assert [one.name for one in ready] == list("abcdef")
    assert renderer.most_at_once == 3
    assert len({one.fields.uuid for one in ready}) == 6


def test_the_request_id_goes_along() -> None:
    renderer = Renderer()
    with observe.request("req-7"):
        prepared(renderer, command("a", "b"))
    assert renderer.request_ids == {"req-7"}


def test_notices_tell_which_document_they_are_about() -> None:
    assert prepared(Renderer(), command("lease"))[0].report[0].document == "lease"


def test_options_are_handed_on() -> None:
    renderer = Renderer()
    prepared(renderer, command("a", flatten=True, remove_tags=False))
    rpc, request = renderer.asked[0]
    assert (rpc, request.flatten, request.remove_tags) == (rendering.PREPARE_PDF, True, False)
    html = HtmlDocumentInput(html="<p>Hi</p>", size="A4", html_header="top")
    wanted = CreateTemplate(request_id="r", actor=ACTOR, html_documents=[html])
    prepared(renderer, wanted)
    rpc, request = renderer.asked[-1]
    assert (rpc, request.html, request.size, request.html_header) == (rendering.PREPARE_HTML, "<p>Hi</p>", "A4", "top")
    assert len(request.name) == 36


def test_a_refused_document_is_named_with_rendering_s_reason() -> None:
    renderer = Renderer({"b": invalid("The PDF is encrypted"), "c": invalid("The PDF has no pages")})
    refusal = refused(renderer, command(*"abc"), concurrency=3)
    assert refusal.code == "invalid"
    assert refusal.message == "documents[1].file: The PDF is encrypted"
    assert {"field": "documents[1].file", "reason": "The PDF is encrypted"} in refusal.details


def test_rendering_s_field_becomes_ours() -> None:
    renderer = Renderer({"a": invalid("size is not known", "size", "must be Letter or A4")})
    html = HtmlDocumentInput(html="x", name="a", size="B5")
    refusal = refused(renderer, CreateTemplate(request_id="r", actor=ACTOR, html_documents=[html]))
    assert refusal.details == [{"field": "documents[0].size", "reason": "must be Letter or A4"}]


def test_a_refusal_of_another_kind_keeps_its_code() -> None:
    assert refused(Renderer({"a": ServiceError("too_large", "more than 1000 pages")}), command("a")).code == "too_large"
    # An outage is nobody's mistake, and comes before any refusal.
    renderer = Renderer(
        {"a": invalid("bad"), "b": ServiceError("unavailable", "rendering does not answer")}, wait_for=2
    )
    assert refused(renderer, command("a", "b")).code == "unavailable"


def test_after_a_refusal_nothing_more_is_begun() -> None:
    renderer = Renderer({"a": invalid("bad")})
    refused(renderer, command(*(["a"] + [f"{n}" for n in range(29)])), concurrency=1)
    # The one that was begun while the refusal was being noticed may run to its end.
    assert len(renderer.asked) <= 2


def test_preparing_has_an_end() -> None:
    class Slow(Renderer):
        def call(self, rpc: Rpc[Any, Any], request: Any) -> rendering.PreparedDocument:
            time.sleep(1.5)  # a machine may be busy for a while before it begins
            return super().call(rpc, request)

    renderer = Slow()
    assert refused(renderer, command(*"abcdef"), concurrency=1, seconds=1.4).code == "unavailable"
    assert len(renderer.asked) == 1


def test_names_of_documents() -> None:
    names = [
        one.name for one in sources(command("contract.PDF", "../../etc/passwd", "a\u202eb\x00", "", ".pdf", "名前"))
    ]
    assert names[:3] == ["contract", "../../etc/passwd", "ab"]
    assert len(names[3]) == 36
    assert names[4:] == [".pdf", "名前"]
    refusal = refused(Renderer(), command("ok", "x" * 256))
    assert refusal.details[0]["field"] == "documents[1].name"


def test_characters_that_no_font_has_are_told_with_their_field() -> None:
    class Fonts(Renderer):
        def call(self, rpc: Rpc[Any, Any], request: Any) -> Any:
            if rpc is not rendering.CHECK_TEXT:
                return super().call(rpc, request)
            self.asked.append((rpc, request))
            return rendering.UndrawableText(
                characters=["".join(c for c in text if c == "\ue000") for text in request.texts]
            )

    fields = [
        FieldInput(name="Plain", default_value="Zoë", options=["A"]),
        FieldInput(name="Odd", default_value="a\ue000", options=["漢\ue000"]),
        FieldInput(name="Reasons", preferences={"reasons": ["漢", "\ue000"]}),
        FieldInput(name="Fine", default_value="漢字"),
    ]
    renderer = Fonts()
    wanted = CreateTemplate(
        request_id="r",
        actor=ACTOR,
        documents=[DocumentInput(name="a", file=blob("a"), fields=fields), DocumentInput(name="b", file=blob("b"))],
    )
    first, second = prepared(renderer, wanted)
    notices = [notice for notice in first.report if notice.code == "undrawable_characters"]
    assert [notice.message.split(" has")[0] for notice in notices] == ["field 'Odd'", "field 'Reasons'"]
    assert all("U+E000" in notice.message and notice.document == "a" for notice in notices)
    assert [notice.code for notice in second.report] == ["javascript_removed"]
    assert [request.texts for rpc, request in renderer.asked if rpc is rendering.CHECK_TEXT] == [["字\n漢\n\ue000"]]


def test_what_a_change_of_documents_sends_in() -> None:
    changes = [
        DocumentChange(name="x.pdf", file=blob("x")),
        DocumentChange(remove=True, position=0),
        DocumentChange(html="<p>Hi</p>", replace=True, position=1),
    ]
    pdf, nothing, page = sources_of_changes(changes)
    assert nothing is None
    assert pdf is not None
    assert page is not None
    assert [(one.name[:1], one.path, one.part) for one in (pdf, page)] == [
        ("x", "documents[0]", "file"),
        (page.name[:1], "documents[2]", "html"),
    ]
    assert len(page.name) == 36
    with pytest.raises(ServiceError) as caught:
        sources_of_changes([DocumentChange(name="empty"), *changes, DocumentChange(replace=True, position=0)])
    assert [detail["field"] for detail in caught.value.details] == ["documents[0].file", "documents[4].file"]

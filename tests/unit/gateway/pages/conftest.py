"""The pages with a bus that answers from a table: what is tested here is what the pages themselves decide."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flask
import pytest
from pydantic import SecretStr

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc import Rpc, rendering, submissions
from contracts.rpc.submissions.signing.form import SigningForm
from contracts.runtime.clock import now
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Account, Attachment
from services.gateway.pages.app import create_pages

SLUG = "k3VtR9mQzXw2LpHbN7Yc4D"
KEY = "the-key-of-an-active-user"


@dataclass
class Settings:
    base_url: str = "https://sign.example"
    link_secret: SecretStr = field(default_factory=lambda: SecretStr("secret of the links"))
    smtp_url: Any = None
    trusted_proxies: str = "10.0.0.0/8"
    var_dir: Path | None = None
    local_provider_url: str = ""
    local_stamp_issuer_url: str = ""
    pages_as_modules: bool = False
    max_file_size: int = 1024 * 1024


class RecordingBus:
    """Answers by ``answers[rpc]``, a value or a function of the request, and remembers what was asked."""

    def __init__(self) -> None:
        self.answers: dict[Rpc[Any, Any], Any] = {}
        self.asked: list[tuple[Rpc[Any, Any], Any]] = []

    def call(self, rpc: Rpc[Any, Any], request: Any) -> Any:
        self.asked.append((rpc, request))
        answer = self.answers[rpc]
        answer = answer(request) if callable(answer) else answer
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    def requests(self, rpc: Rpc[Any, Any]) -> list[Any]:
        return [request for asked, request in self.asked if asked is rpc]


def signing_form(state: str = "open", **more: Any) -> SigningForm:
    given = {"submission_name": "Agreement", "account_name": "Acme", "submitter_id": 1, "role": "Signer", **more}
    return SigningForm(state=state, **given)


def attachment(request: submissions.form.AttachFile) -> Attachment:
    url = f"https://sign.example/file/token/{request.filename}"
    return Attachment(
        uuid="a1", created_at=now(), url=url, filename=request.filename, content_type=request.file.media_type
    )


@pytest.fixture
def bus() -> RecordingBus:
    bus = RecordingBus()
    done = submissions.form.Done(state="open")
    bus.answers = {
        submissions.form.OPEN_FORM: signing_form(),
        submissions.form.VIEW_FORM: done,
        submissions.form.SAVE_VALUES: done,
        submissions.form.COMPLETE_FORM: submissions.form.Done(state="completed"),
        submissions.form.DECLINE_FORM: submissions.form.Done(state="declined"),
        submissions.form.REPORT_WRONG_RECIPIENT: submissions.form.Done(state="wrong_recipient"),
        submissions.form.ATTACH_FILE: attachment,
    }
    return bus


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(f"file://{tmp_path}/blobs")


@pytest.fixture
def drawn(bus: RecordingBus, blobs: BlobStore) -> BlobRef:
    """What the rendering service draws, whatever it is asked for."""
    picture = blobs.put(b"\x89PNG drawn", "image/png", prefix="rendering/")
    bus.answers[rendering.DRAW_PAGE] = picture
    bus.answers[rendering.DRAW_SIGNATURE] = picture
    return picture


MakePages = Callable[..., flask.Flask]


@pytest.fixture
def make_pages(bus: RecordingBus, blobs: BlobStore) -> MakePages:
    def make(account: Account | None = None, **settings: Any) -> flask.Flask:
        own = account or Account()
        return create_pages(Settings(**settings), bus, blobs, lambda token: token == KEY, account=lambda: own)

    return make


@pytest.fixture
def client(make_pages: MakePages) -> Any:
    return make_pages().test_client()

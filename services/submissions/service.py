"""The service: its entrypoints are in ``entrypoints/``, by who calls."""

from contracts.rpc import health
from contracts.runtime.bus.told import tells_events
from contracts.runtime.operations.operating import operated
from contracts.runtime.worker import Context, handles
from services.submissions.entrypoints.api import Api
from services.submissions.entrypoints.batches import Batches
from services.submissions.entrypoints.creation import Creation
from services.submissions.entrypoints.events import Events
from services.submissions.entrypoints.evidence import Evidence
from services.submissions.entrypoints.in_person import InPerson
from services.submissions.entrypoints.links import Links
from services.submissions.entrypoints.phone import Phone
from services.submissions.entrypoints.progress import Progress
from services.submissions.entrypoints.signing import Signing
from services.submissions.entrypoints.test_mode import TestMode
from services.submissions.settings import Settings


@operated
@tells_events
class SubmissionsService(Creation, Batches, Api, Links, Progress, Signing, Phone, InPerson, Evidence, TestMode, Events):
    """Signing requests: see README.md."""

    name = "submissions"
    context = Context(Settings)

    @handles(health.PING["submissions"])
    def ping(self, request: health.Ping) -> health.Pong:
        return self.context.pong()

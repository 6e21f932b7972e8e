"""A signature that is drawn on a telephone for a form that is open on another device.

The other device gets a link with a token, good for minutes and for one drawing. The telephone is let in to nothing by it: it
may deliver the drawing, and is told whose signature it is and on which document. The signer takes the drawing, on the other
device, as a value of their field.
"""

from enum import StrEnum

from contracts.blobs import BlobRef
from contracts.rpc import Rpc
from contracts.rpc.submissions.signing.form import Done
from contracts.rpc.submissions.visit import Visit
from contracts.types import Attachment, Moment, Tolerant


class PhoneStep(StrEnum):
    """How far a drawing is. ``waiting``: nobody has opened the link. ``connected``: a telephone has; no other one can any more.
    ``delivered``: the drawing is there. ``over``: the time has run out, it was cancelled, or the form is not open any more."""

    WAITING = "waiting"
    CONNECTED = "connected"
    DELIVERED = "delivered"
    OVER = "over"


class StartPhoneDrawing(Visit):
    """The signer wants to draw for their ``field`` (uuid). ``token_digest`` is the SHA-256, in hex, of the link's token, which
    stays with the gateway and the signer. An earlier link of this signer is good for nothing any more."""

    request_id: str
    field: str
    token_digest: str


class FindPhoneDrawing(Visit):
    """The other device asks how far it is."""

    token_digest: str


class CancelPhoneDrawing(FindPhoneDrawing):
    """The signer wants it no more."""

    request_id: str


class PhoneDrawing(Tolerant):
    """``attachment`` is the drawing, once it is delivered: no value of a field yet."""

    step: PhoneStep
    expires_at: Moment
    attachment: Attachment | None = None


class FindPhonePage(Tolerant):
    """Somebody has opened the link. ``device_digest`` is the SHA-256, in hex, of what their browser was given when it
    connected."""

    token_digest: str
    device_digest: str | None = None


class ConnectPhone(FindPhonePage):
    """Their browser is the one that will draw, from now on the only one; ``device_digest`` is what it is known by."""

    request_id: str
    device_digest: str
    ip: str | None = None
    user_agent: str | None = None


class PhonePage(Tolerant):
    """What the telephone shows. ``mine`` False: another one is connected. While it is ``over``, and before this one is
    connected, nothing but ``step`` and ``lang`` is told to one that is not ``mine``."""

    step: PhoneStep
    mine: bool = False
    lang: str | None = None
    account_name: str = ""
    submission_name: str = ""
    submitter_name: str | None = None
    type: str = "signature"
    color: str | None = None
    expires_at: Moment | None = None


class DeliverPhoneDrawing(ConnectPhone):
    """The drawing, a picture with something on it."""

    filename: str
    file: BlobRef


START_PHONE_DRAWING = Rpc("submissions", "start_phone_drawing", StartPhoneDrawing, PhoneDrawing)
PHONE_DRAWING = Rpc("submissions", "phone_drawing", FindPhoneDrawing, PhoneDrawing)
CANCEL_PHONE_DRAWING = Rpc("submissions", "cancel_phone_drawing", CancelPhoneDrawing, Done)
PHONE_PAGE = Rpc("submissions", "phone_page", FindPhonePage, PhonePage)
CONNECT_PHONE = Rpc("submissions", "connect_phone", ConnectPhone, PhonePage)
DELIVER_PHONE_DRAWING = Rpc("submissions", "deliver_phone_drawing", DeliverPhoneDrawing, PhonePage, timeout=30)

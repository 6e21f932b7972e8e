"""Text messages through somebody's HTTP interface: a plain JSON POST, or Twilio's Messages resource.

https://www.twilio.com/docs/messaging/api/message-resource#create-a-message-resource
"""

import base64
import json
from dataclasses import dataclass
from urllib.parse import urlencode

from contracts.runtime.http.outbound import Answer, Outbound, OutboundFailed, OutboundRefused
from services.notifications.addresses import one_line
from services.notifications.channels.outcome import NotSent, Refused

CONNECT_SECONDS = 10.0
ATTEMPT_SECONDS = 30.0
_ABOUT_US = frozenset({401, 402, 403, 404})
"""Our credentials, credit or address are wrong: an operator has to mend it, so it waits."""

_LATER = frozenset({408, 409, 425, 429})
_LONGEST_ANSWER = 300


@dataclass(frozen=True)
class SmsChannel:
    """One provider. ``format`` is ``json`` or ``twilio``; ``sender`` is whom messages come from."""

    outbound: Outbound
    url: str
    format: str
    user: str | None
    token: str | None
    sender: str

    def send(self, key: str, phone: str, text: str) -> str:
        """The provider's answer. Raises NotSent when it may succeed later, Refused when it never will.

        A provider that knows ``key`` can tell that a message came twice, when we could not read its first answer.
        """
        headers = {"User-Agent": "Countersign", "Accept": "application/json", "Idempotency-Key": key}
        if self.format == "twilio":
            body = urlencode({"To": phone, **self._twilio_sender(), "Body": text}).encode()
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        else:
            message = {"id": key, "to": phone, "from": self.sender, "text": text}
            body = json.dumps(message, ensure_ascii=False).encode()
            headers["Content-Type"] = "application/json"
        return post(self.outbound, self.url, body, headers | self._authorization(), "The SMS provider")

    def try_out(self) -> int:
        """Ask without sending anything: the status of a GET with our credentials. Of Twilio that is the list of messages, which
        it gives to nobody else; what others answer says only that they are there, unless it is 401 or 403.

        Raises OutboundFailed and OutboundRefused.
        """
        url = f"{self.url}?PageSize=1" if self.format == "twilio" else self.url
        headers = {"User-Agent": "Countersign", "Accept": "application/json"} | self._authorization()
        return self.outbound.get(url, headers, total_timeout=CONNECT_SECONDS, max_response=4_096).status

    def _twilio_sender(self) -> dict[str, str]:
        return {"MessagingServiceSid" if self.sender.startswith("MG") else "From": self.sender}

    def _authorization(self) -> dict[str, str]:
        if self.token is None:
            return {}
        if self.user is None:
            return {"Authorization": f"Bearer {self.token}"}
        basic = base64.b64encode(f"{self.user}:{self.token}".encode()).decode()
        return {"Authorization": f"Basic {basic}"}


def post(outbound: Outbound, url: str, body: bytes, headers: dict[str, str], receiver: str) -> str:
    """POST, and what its answer means: 2xx is the answer, in one line; all else raises. ``receiver`` begins the sentence."""
    try:
        answer = outbound.post(
            url, body, headers, connect_timeout=CONNECT_SECONDS, total_timeout=ATTEMPT_SECONDS, max_response=4_096
        )
    except OutboundRefused as error:
        raise Refused(f"{receiver} cannot be called: its URL {error.reason}") from error
    except OutboundFailed as error:
        raise NotSent(f"{receiver} {error.reason}") from error
    if 200 <= answer.status < 300:
        return _words(answer)
    sentence = f"{receiver} answered {_words(answer)}"
    if answer.status >= 500 or answer.status in _LATER or answer.status in _ABOUT_US:
        raise NotSent(sentence)
    raise Refused(sentence)


def _words(answer: Answer) -> str:
    """Status and what it says, without being longer than anybody reads."""
    return one_line(f"{answer.status} {answer.text}", _LONGEST_ANSWER)

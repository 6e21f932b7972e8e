"""The trials of ``check`` for this service: the mail server and the SMS provider. Nothing is sent to anybody."""

import os
from functools import partial

from contracts.runtime.http.outbound import Outbound, OutboundFailed, OutboundRefused
from contracts.runtime.operations.checking import Fault, Trial
from services.notifications.channels.dkim_keys import BadKey
from services.notifications.channels.outcome import NotSent, Refused
from services.notifications.channels.server import Server
from services.notifications.channels.smtp import SmtpChannel
from services.notifications.sending import phone_messages
from services.notifications.settings import Settings

SECONDS = 10.0
"""For each answer of a mail server; three times as long for all of them."""


def trials(settings: Settings) -> list[Trial]:
    return [
        Trial(
            "mail server",
            partial(_mail, settings),
            "correct SMTP_URL or MAIL_FROM, or ask whoever runs the mail server",
        ),
        Trial("DKIM", partial(_dkim, settings), "correct DKIM_KEYS"),
        Trial("SMS provider", partial(_sms, settings), "correct SMS_URL, SMS_USER or SMS_TOKEN"),
    ]


def _mail(settings: Settings) -> str:
    server = settings.server
    if server is None:
        settings.mail_folder.mkdir(parents=True, exist_ok=True)
        if not os.access(settings.mail_folder, os.W_OK):
            raise Fault(f"SMTP_URL is not set, and {settings.mail_folder}, where mails are kept, is not writable")
        return f"SMTP_URL is not set: mails are kept in {settings.mail_folder}"
    channel = SmtpChannel(
        server, settings.sender, timeout=min(SECONDS, settings.smtp_timeout), attempt_seconds=3 * SECONDS
    )
    try:
        answer = channel.try_out()
    except (NotSent, Refused) as error:
        raise Fault(f"{server.host}:{server.port}: {error}") from error
    finally:
        channel.close()
    return f"{server.host}:{server.port}, {_login(server)}; it takes mails from {settings.sender}: {answer}"


def _dkim(settings: Settings) -> str:
    try:
        keys = settings.dkim
    except BadKey as error:
        raise Fault(str(error)) from error
    if not keys:
        return "DKIM_KEYS is not set: mails are not signed here"
    listed = [f'{key.selector}._domainkey.{key.domain} TXT "{key.record}"' for key in keys]
    return f"mails are signed; the DNS has to have {', '.join(listed)}"


def _login(server: Server) -> str:
    return "without a login" if server.user is None else f"logged in as {server.user}"


def _sms(settings: Settings) -> str:
    outbound = Outbound.configured(settings)
    channel = phone_messages.channel_of(settings, outbound)
    if channel is None:
        consequence = "they are kept and shown at /dev/mail" if settings.keeps_sms else "none are sent"
        return f"SMS_URL is not set: {consequence}"
    try:
        status = channel.try_out()
    except (OutboundFailed, OutboundRefused) as error:
        raise Fault(f"its URL {error.reason}") from error
    if status in (401, 403):
        raise Fault(f"it refuses SMS_USER and SMS_TOKEN ({status})")
    if settings.sms_format == "twilio":
        if not 200 <= status < 300:
            raise Fault(f"it answered {status} when it was asked for the messages of SMS_USER")
        return "it takes SMS_USER and SMS_TOKEN"
    return f"but only reached (it answers {status}): whether it takes SMS_TOKEN shows with the first message"

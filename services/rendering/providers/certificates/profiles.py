"""In what providers of the CSC API differ from its text, as data: ``CertsignSettings.profile`` names one.

A provider that is not here and keeps to the text is ``standard``. Another one is another entry, not another branch.
"""

from dataclasses import dataclass, field

Failure = tuple[str, str]
"""A regular expression that is looked for in a provider's error and description, and what it means (``FAILURES``)."""

_STANDARD_FAILURES: tuple[Failure, ...] = (
    (r"lock(ed|out)", "credential_locked"),
    (r"\brevoked", "credential_revoked"),
    (r"suspend|disabled", "credential_suspended"),
    (r"quota|\bcredits?\b|insufficient|too many signatures", "quota"),
    (r"invalid_pin|\bpin\b.*(invalid|wrong|incorrect)|(invalid|wrong|incorrect)\W+(\w+\W+){0,2}pin\b", "wrong_pin"),
    (r"invalid_otp|\botp\b.*(invalid|wrong|incorrect|expired)|(invalid|wrong|incorrect)\W+(\w+\W+){0,2}otp\b", "wrong_code"),
    (r"expired_token|\bsad\b.*expired|expired.*\bsad\b|(authori[sz]ation|transaction).*expired", "grant_expired"),
    (r"\bsad\b.*(already|used)|already.*\bsad\b", "grant_used"),
    (r"invalid_grant|\bsad\b.*(invalid|unknown)|(invalid|unknown).*\bsad\b", "grant_refused"),
    (r"access_denied", "refused"),
    (r"expired", "credential_expired"),
)  # fmt: skip


@dataclass(frozen=True)
class Meaning:
    """What a failure means: in words, and what may be done about it."""

    message: str
    retryable: bool = False
    counts: bool = False


FAILURES = {
    "credential_locked": Meaning("the provider has locked the credential"),
    "credential_revoked": Meaning("the provider's certificate was revoked"),
    "credential_suspended": Meaning("the provider has suspended the credential"),
    "credential_expired": Meaning("the provider's certificate has expired"),
    "quota": Meaning("the provider's account has no signatures left"),
    "wrong_pin": Meaning("the provider does not accept the PIN; too many wrong ones lock the credential", counts=True),
    "wrong_code": Meaning("the provider does not accept the one-time code", counts=True),
    "grant_expired": Meaning("the permission to sign has expired", retryable=True),
    "grant_used": Meaning("the permission to sign was used already", retryable=True),
    "grant_refused": Meaning("the provider does not accept its permission to sign any more", retryable=True),
    "refused": Meaning("the signature was refused at the provider"),
}


@dataclass(frozen=True)
class Profile:
    """``versions``: the paths at which the service is looked for, in that order. ``sign_algorithm``: ``signature`` sends the
    algorithm of the signature (sha256WithRSAEncryption), ``key`` that of the key (rsaEncryption), with the hash beside it.
    ``operation_mode``: ``S`` waits for signatures, ``A`` asks for them later. ``poll_parameter`` names what is asked for then;
    ``not_ready`` are pieces of the error that means 'not yet'. ``hashes_per_call``: at most, of one permission; the others are
    added to it (extendTransaction). ``authorize_path``: where a permission is had by the client's certificate alone, below the
    provider's OAuth server. ``mtls_host_prefix`` goes before the host where the client shows a certificate. ``revokes``: a
    permission is given back after its use."""

    versions: tuple[str, ...] = ("v2", "v1")
    sign_algorithm: str = "signature"
    operation_mode: str = "S"
    poll_parameter: str = "requestID"
    not_ready: tuple[str, ...] = ()
    time_stamp_field: str = "timestamp"
    hashes_per_call: int | None = None
    authorize_path: str | None = None
    mtls_host_prefix: str = ""
    revokes: bool = False
    failures: tuple[Failure, ...] = field(default=_STANDARD_FAILURES, repr=False)


PROFILES = {
    "standard": Profile(),
    "d-trust": Profile(
        versions=("v2",),
        sign_algorithm="key",
        operation_mode="A",
        not_ready=("not ready", "not yet", "pending", "in progress"),
        time_stamp_field="timeStampToken",
        authorize_path="oauth2/authorize_tls",
        revokes=True,
    ),
    "digicert": Profile(versions=("v1",), hashes_per_call=1, mtls_host_prefix="clientauth."),
}

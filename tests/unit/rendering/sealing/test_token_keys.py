"""The seal's key in a PKCS#11 token: SoftHSM's, which is real but for the hardware."""

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pikepdf
import pkcs11
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from pydantic import ValidationError

from services.rendering.jobs.sealing import reserving
from services.rendering.jobs.sealing.certificates import KeyUnavailable, SealIdentity, UnusableCertificate
from services.rendering.jobs.sealing.token_keys import TokenEcKey, TokenRsaKey, load_pkcs11, login_problem
from services.rendering.jobs.sealing.verifying import read_back
from services.rendering.jobs.sealing.verifying.verify import verify
from services.rendering.settings import Settings
from tests.support.files.pdf_files import document, line
from tests.support.rendering.sealing import assert_sealed
from tests.support.rendering.seals import NOW, finish, text
from tests.support.servers.providers.softhsm import MODULE, PIN, certified, new_key, tokens
from tests.support.services.secret_settings import LINK_SECRET


@dataclass(frozen=True)
class Wanted:
    """What the settings say, with a few things changed."""

    folder: Path
    kind: str

    def load(self, **changed: Any) -> SealIdentity:
        own = tokens()
        chain = self.folder / "chain.pem"
        chain.write_bytes(changed.pop("certificates", own[self.kind].chain_pem))
        given = {"module": Path(MODULE), "token": self.kind, "key": self.kind, "pin": PIN, "chain": chain, **changed}
        return load_pkcs11(**given)


def restart() -> None:
    """As far as this process can tell: nobody is logged in, and the sessions are gone."""
    tokens()
    pkcs11.lib(MODULE).reinitialize()


@pytest.fixture(autouse=True)
def _nobody_logged_in() -> None:
    restart()


@pytest.fixture(params=["rsa", "ec"])
def wanted(request: pytest.FixtureRequest, tmp_path: Path) -> Wanted:
    return Wanted(tmp_path, request.param)


def sealed(identity: SealIdentity) -> bytes:
    with pikepdf.open(io.BytesIO(document(line("Agreement")))) as pdf:
        return finish(reserving.reserve(pdf, text(), identity.signer.size), identity)


def test_a_token_seals(wanted: Wanted, tmp_path: Path) -> None:
    identity = wanted.load()
    own = tokens()[wanted.kind]
    assert identity.chain == own.chain
    assert isinstance(identity.key, TokenRsaKey if wanted.kind == "rsa" else TokenEcKey)
    assert identity.problem(NOW) is None
    data = sealed(identity)
    assert_sealed(data, tmp_path)
    assert read_back.check(data, [], [], pages=1, certificate=identity.encoded[0]) == "B-B"
    (signature,) = verify(data, [identity.encoded[-1]], NOW).signatures
    assert (signature.indication, signature.trust) == ("TOTAL-PASSED", "trusted")


def test_the_chain_may_come_in_any_order_after_the_leaf(wanted: Wanted) -> None:
    own = tokens()
    leaf, root = own[wanted.kind].chain
    other = own["ec" if wanted.kind == "rsa" else "rsa"].chain[1]
    pem = b"".join(one.public_bytes(Encoding.PEM) for one in (leaf, other, root))
    assert wanted.load(certificates=pem).chain == (leaf, root)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"module": Path("/nowhere/module.so")}, "cannot be used"),
        ({"token": "another"}, "has no token named another"),
        ({"key": "another"}, "has no private key named another"),
        ({"pin": "0000"}, "SIGNING_PKCS11_PIN is not that of the token"),
        ({"certificates": b"no certificate"}, "holds no certificate in PEM"),
        ({"chain": Path("/nowhere/chain.pem")}, "cannot be read: No such file"),
    ],
)
def test_what_is_wrong_is_said_plainly(wanted: Wanted, changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusableCertificate, match=reason) as refused:
        wanted.load(**changed)
    assert PIN not in str(refused.value)


def test_the_certificate_is_that_of_the_key(tmp_path: Path) -> None:
    """Of another key of the same kind, and of another kind."""
    for kind, other in (("rsa", "ec"), ("ec", "rsa")):
        with pytest.raises(UnusableCertificate):
            Wanted(tmp_path, kind).load(certificates=tokens()[other].chain_pem)
    for kind in ("rsa", "ec"):
        stranger = certified(kind, new_key(kind))
        with pytest.raises(UnusableCertificate, match="is not the key of the first certificate"):
            Wanted(tmp_path, kind).load(certificates=stranger.chain_pem)


def test_a_lost_session_is_opened_anew(wanted: Wanted) -> None:
    identity = wanted.load()
    assert sealed(identity)
    restart()
    assert sealed(identity)


def test_a_token_that_is_away_is_waited_for(wanted: Wanted, tmp_path: Path) -> None:
    identity = wanted.load()
    token: Any = identity.key._token  # type: ignore[union-attr]
    restart()
    token._label = "gone"
    with pytest.raises(KeyUnavailable, match="the token gone does not sign"):
        sealed(identity)
    token._label = wanted.kind
    assert sealed(identity)


def test_several_threads_sign(wanted: Wanted, tmp_path: Path) -> None:
    identity = wanted.load()
    with ThreadPoolExecutor(6) as side_by_side:
        for data in side_by_side.map(lambda _number: sealed(identity), range(24)):
            assert read_back.check(data, [], [], pages=1, certificate=identity.encoded[0]) == "B-B"


def test_the_key_stays_in_its_token(wanted: Wanted) -> None:
    key: Any = wanted.load().key
    for call in (key.private_numbers, lambda: key.private_bytes(None, None, None)):
        with pytest.raises(NotImplementedError):
            call()


def test_a_pin_is_not_tried_where_a_wrong_one_would_lock_the_token() -> None:
    flags = pkcs11.TokenFlag
    ready = flags.LOGIN_REQUIRED | flags.TOKEN_INITIALIZED | flags.USER_PIN_INITIALIZED
    assert login_problem(ready) is None
    assert login_problem(ready | flags.USER_PIN_COUNT_LOW) is None
    assert login_problem(ready | flags.USER_PIN_COUNT_LOW | flags.USER_PIN_FINAL_TRY) is not None
    assert login_problem(ready | flags.USER_PIN_LOCKED) == "its PIN is locked"


def test_settings_of_a_token_come_together(tmp_path: Path) -> None:
    whole: Any = {
        "signing_pkcs11_module": MODULE,
        "signing_pkcs11_token": "rsa",
        "signing_pkcs11_key": "rsa",
        "signing_pkcs11_pin": PIN,
        "signing_pkcs11_chain_file": tmp_path / "chain.pem",
    }
    common: Any = {
        "amqp_url": "amqp://guest@localhost//",
        "database_url": "sqlite:////tmp/x",
        "blob_url": "file:///tmp/x",
        "base_url": "http://localhost",
        "link_secret": LINK_SECRET,
    }
    assert Settings(**common, **whole).has_own_key  # without a CERTIFICATE_DIR
    for name in whole:
        given = {key: value for key, value in whole.items() if key != name}
        with pytest.raises(ValidationError, match=f"needs {name.upper()}, too"):
            Settings(**common, certificate_dir=tmp_path, **given)
    assert not Settings(**common, certificate_dir=tmp_path, signing_pkcs11_pin=PIN).has_own_key
    with pytest.raises(ValidationError, match="set either SIGNING_PKCS12_FILE or SIGNING_PKCS11_MODULE"):
        Settings(**common, **whole, signing_pkcs12_file=tmp_path / "seal.p12")


def test_a_short_key_is_refused(tmp_path: Path) -> None:
    short = certified("short", rsa.generate_private_key(65537, 1024))
    with pytest.raises(UnusableCertificate, match="1024 bits is too short"):
        Wanted(tmp_path, "rsa").load(certificates=short.chain_pem)

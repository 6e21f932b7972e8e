"""What is written beside an image: CycloneDX's schema, in-toto's own reading of statements and its signatures find nothing wrong, and
dpkg and pip know of the same packages. What is found here is what this machine holds; images are looked into by ``tests/deployed``."""

import base64
import copy
import hashlib
import importlib
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._key import SSlibKey

from deploy.release import attest, make_images
from deploy.release.attest import Built, Image
from deploy.services import ROOT
from tests.support.judges.operations.bills import faults, packages

CREATED = datetime(2027, 3, 5, 16, 7, 9, tzinfo=UTC)
IMAGE = Image("countersign/webhooks:1.2.3", "a1" * 32, "b2" * 32)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What the program that looks into images finds where these tests run."""
    done = subprocess.run([sys.executable, make_images.INVENTORY], stdout=subprocess.PIPE, text=True, check=True)
    inventory: dict[str, Any] = json.loads(done.stdout)
    return inventory


@pytest.fixture(scope="module")
def bill(found: dict[str, Any]) -> dict[str, Any]:
    return attest.bill("countersign-webhooks", "1.2.3", "c0ffee", CREATED, found)


@pytest.fixture(scope="module")
def statement() -> dict[str, Any]:
    """Of an image of this commit."""
    recipe = make_images.recipe("webhooks", revision="c0ffee", base="python@sha256:" + "d4" * 32, epoch=1)
    built = Built(
        what="webhooks",
        commit=make_images.git("rev-parse", "HEAD"),
        source="https://git.example.com/countersign",
        arguments=recipe.arguments,
        base=recipe.arguments["PYTHON"],
        base_digest="d4" * 32,
        files=attest.hashes(ROOT, [recipe.dockerfile, recipe.lock, "deploy/release/image"]),
        builder="https://ci.example.com",
        engine="podman version 4.3.1",
        began=CREATED,
        ended=CREATED,
    )
    return attest.provenance(IMAGE, built, b"{}\n", "webhooks.cdx.json")


def test_the_schema_of_the_standard_accepts_the_bill(bill: dict[str, Any]) -> None:
    other = copy.deepcopy(bill)
    other["components"][0]["type"] = "thing"
    accepted, refused = faults(json.dumps(bill), json.dumps(other))
    assert accepted is None
    assert "'thing' is not one of" in str(refused)


def test_it_holds_what_dpkg_and_pip_say_is_installed(bill: dict[str, Any]) -> None:
    said = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package} ${Version}\n"],
        stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    installed = {tuple(line.split()[1:]) for line in said.splitlines() if line.startswith("installed ")}
    assert {(one["name"], one["version"]) for one in packages(bill, "deb")} == installed
    said = subprocess.run(
        [sys.executable, "-m", "pip", "list", "--format", "json"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    listed = {(one["name"].lower().replace("_", "-").replace(".", "-"), one["version"]) for one in json.loads(said)}
    assert {(one["name"], one["version"]) for one in packages(bill, "pypi")} == listed


def test_packages_of_python_have_the_licence_that_they_state(bill: dict[str, Any]) -> None:
    stated = {one["name"]: one["licenses"] for one in packages(bill, "pypi") if "licenses" in one}
    assert stated["werkzeug"] == [{"expression": "BSD-3-Clause"}]
    assert {"license": {"name": "BSD License"}} in stated["vine"]


def test_the_same_find_gives_the_same_bill(bill: dict[str, Any], found: dict[str, Any]) -> None:
    assert attest.bill("countersign-webhooks", "1.2.3", "c0ffee", CREATED, found) == bill
    other = copy.deepcopy(found)
    other["debian_packages"][0]["version"] += "+1"
    changed = attest.bill("countersign-webhooks", "1.2.3", "c0ffee", CREATED, other)
    assert changed["serialNumber"] != bill["serialNumber"], "another bill"


def read(statement: dict[str, Any]) -> tuple[Statement, Any]:
    """The statement and its predicate, as in-toto reads them: it refuses keys that it does not know."""
    outer = json_format.ParseDict(statement, statement_pb2.Statement())
    predicate = json_format.ParseDict(statement["predicate"], provenance_pb2.Provenance())
    return Statement.copy_from_pb(outer), predicate


def test_in_toto_reads_the_provenance(statement: dict[str, Any]) -> None:
    outer, predicate = read(statement)
    outer.validate()
    assert outer.pb.predicate_type == "https://slsa.dev/provenance/v1"
    assert {one.digest["sha256"] for one in outer.pb.subject} == {IMAGE.manifest, IMAGE.configuration}
    definition, details = predicate.build_definition, predicate.run_details
    assert definition.external_parameters["buildArguments"]["SERVICE"] == "webhooks"
    assert details.builder.id == "https://ci.example.com"
    assert details.metadata.started_on.ToDatetime(UTC) == CREATED
    assert [one.digest["sha256"] for one in details.byproducts] == [hashlib.sha256(b"{}\n").hexdigest()]
    dependencies = {one.name: dict(one.digest) for one in definition.resolved_dependencies}
    assert dependencies["source"] == {"gitCommit": make_images.git("rev-parse", "HEAD")}
    lock = "deploy/locks/webhooks.txt"
    assert dependencies[lock] == {"sha256": hashlib.sha256((ROOT / lock).read_bytes()).hexdigest()}
    assert {"services/Dockerfile", "deploy/release/image/packages.sh"} <= set(dependencies)
    assert dependencies["python@sha256:" + "d4" * 32] == {"sha256": "d4" * 32}


def test_in_toto_would_not_read_anything(statement: dict[str, Any]) -> None:
    misspelt = copy.deepcopy(statement)
    misspelt["predicate"]["runDetails"]["buildr"] = {}
    with pytest.raises(json_format.ParseError, match="buildr"):
        read(misspelt)
    nothing = copy.deepcopy(statement)
    nothing["subject"][0]["digest"] = {}
    with pytest.raises(ValueError, match="digest"):
        read(nothing)[0].validate()


@pytest.fixture(params=["EC -pkeyopt ec_paramgen_curve:P-256", "RSA"])
def key(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A private key as docs/install.md has it made."""
    path = tmp_path / "images.pem"
    kind, *options = request.param.split()
    subprocess.run(["openssl", "genpkey", "-algorithm", kind, *options, "-out", path], check=True, capture_output=True)
    return path


def public_of(key: Path) -> SSlibKey:
    serialization = importlib.import_module("cryptography.hazmat.primitives.serialization")
    public = serialization.load_pem_private_key(key.read_bytes(), None).public_key()
    scheme = "ecdsa-sha2-nistp256" if hasattr(public, "curve") else "rsa-pkcs1v15-sha256"
    return SSlibKey.from_crypto(public, scheme=scheme)


def test_whoever_has_the_public_key_can_check_the_envelope(statement: dict[str, Any], key: Path) -> None:
    written = attest.written(statement)
    signed = attest.envelope(written, key)
    public = public_of(key)
    public.keyid = signed["signatures"][0]["keyid"]
    envelope = Envelope.from_dict(copy.deepcopy(signed))
    assert envelope.payload == written
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert list(envelope.verify([public], 1)) == [public.keyid]
    other = copy.deepcopy(signed)
    other["payload"] = base64.b64encode(written.replace(b"webhooks", b"webhoaks")).decode()
    with pytest.raises(VerificationError):
        Envelope.from_dict(other).verify([public], 1)


def test_the_pages_commands_make_a_key_and_check_the_envelope(statement: dict[str, Any], tmp_path: Path) -> None:
    """They are run as they stand in docs/install.md."""
    page = (ROOT / "docs/install.md").read_text().partition("\n## Images\n")[2]
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    (making,) = [block for block in blocks if "openssl genpkey" in block]
    (checking,) = [block for block in blocks if "DSSEv1" in block]

    def run(block: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert run(making).returncode == 0
    signed = attest.envelope(attest.written(statement), tmp_path / "images.pem")
    file = tmp_path / "gateway.provenance.dsse.json"
    file.write_bytes(attest.written(signed))
    assert (run(checking).stdout, json.loads((tmp_path / "statement.json").read_text())) == ("Verified OK\n", statement)
    signed["payload"] = base64.b64encode(attest.written({**statement, "subject": []})).decode()
    file.write_bytes(attest.written(signed))
    refused = run(checking)
    assert (refused.returncode, "failure" in refused.stdout.lower()) == (1, True)


def test_a_key_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    with pytest.raises(attest.NotSigned, match=r"(?i)key"):
        attest.envelope(b"{}", tmp_path / "no.pem")

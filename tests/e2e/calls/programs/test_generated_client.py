"""A client that is generated from /openapi.json is typed, and loses nothing of what we answer.

As a stranger would: the generator makes a Python package, a program is written against its types
(tests/support/clients/generated_client/program.py), ``mypy --strict`` finds no fault in it, and it runs.
"""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.gateway.http.openapi import specification
from tests.support.files.docx_files import docx, paragraph
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = ROOT / "tests" / "support" / "clients" / "generated_client"
FREE = {
    *("FeedEventData", "Metadata", "MetadataInput", "StampDetails", "SubmissionEventData"),
    *("ValueSchema", "Variables", "VariablesSchema"),
}
"""What may hold anything, on purpose: the caller's own data, values for Word documents, what belongs to one kind of event or to
a provider's way of selling stamps."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package ``countersign_client``."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(json.dumps(specification.published()))
    # Formatting is for readers, whom there are none of; a ZIP and a table are to be taken as the files that they are.
    kinds = dict.fromkeys(("application/zip", "text/csv"), "application/octet-stream")
    settings = {"post_hooks": [], "content_type_overrides": {**kinds, "application/x-ndjson": "application/json"}}
    (folder / "settings.json").write_text(json.dumps(settings))
    _run(
        *("-m", "openapi_python_client", "generate", "--fail-on-warning"),
        *("--path", folder / "openapi.json", "--output-path", folder / "client", "--config", folder / "settings.json"),
    )
    return folder / "client"


def test_every_operation_is_there_and_every_key_has_a_type(generated: Path) -> None:
    package = generated / "countersign_client"
    operations = {one.id.replace(".", "_") for one in specification.operations(specification.document())}
    assert {path.stem for path in package.glob("api/*/*.py")} - {"__init__"} == operations
    models = {name: fields for path in package.glob("models/*.py") for name, fields in _classes(path)}
    assert set(specification.document()["components"]["schemas"]) - set(models) <= _WITHOUT_A_CLASS
    made_up = set(models) - set(specification.document()["components"]["schemas"])
    assert made_up == set(), "a schema without a name: make it a component"
    untyped = {
        (name, key)
        for name, fields in models.items()
        for key, annotation in fields.items()
        if "Any" in annotation and key != "additional_properties"
    }
    assert untyped == set()
    anything = {name for name, fields in models.items() if list(fields) == ["additional_properties"]}
    anything = {name for name in anything if "Any" in models[name]["additional_properties"]}
    assert anything == FREE


def test_a_program_against_its_types_is_sound_and_every_answer_is_whole(
    generated: Path, sqlite_suite: RunningSuite, tmp_path: Path
) -> None:
    _run(
        *("-m", "mypy", "--strict", "--explicit-package-bases", "--cache-dir", os.devnull, "--config-file="),
        *(PROGRAM, generated / "countersign_client"),
        path=generated,
    )
    (tmp_path / "agreement.pdf").write_bytes(agreement_pdf())
    (tmp_path / "letter.docx").write_bytes(docx(paragraph("For [[customer]]"), paragraph("{{Name;role=Seller}}")))
    files = [tmp_path / "agreement.pdf", tmp_path / "letter.docx"]
    program = "tests.support.clients.generated_client.program"
    told = _run("-m", program, sqlite_suite.base_url, sqlite_suite.api_key, *files, path=generated)
    assert told.strip().endswith("done")


def test_the_program_makes_every_call(generated: Path) -> None:
    """A new operation cannot be forgotten."""
    called = {
        node.func.value.id
        for node in ast.walk(ast.parse((PROGRAM / "program.py").read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "sync_detailed"
        and isinstance(node.func.value, ast.Name)
    }
    one_by_one = {"submissions_dutystamp", "submissions_certsign", "submissions_seal"}  # in a loop
    operations = {path.stem for path in generated.glob("countersign_client/api/*/*.py")} - {"__init__"}
    assert operations - one_by_one == called - {"operation"}


_WITHOUT_A_CLASS = {
    *("Conditions", "ConditionsInput", "CreatedSubmitters"),  # arrays
    *("CreatedSubmittersOrDryRun", "SubmissionOrDryRun", "SubmissionsOrDryRun", "TemplateOrDryRun"),  # one or the other
    *("Cursor", "FieldValue", "FieldValueInput", "Id"),
    *("CertificatePem", "ProviderSecret", "ProviderUrl"),  # texts
}


def _classes(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The classes of a module, each with its annotated attributes."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            annotated = [
                one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            ]
            yield node.name, {ast.unparse(one.target): ast.unparse(one.annotation) for one in annotated}


def _run(*arguments: object, path: Path | None = None) -> str:
    """What Python prints with these arguments; ``path`` is where it finds more modules than ours."""
    found = os.pathsep.join(str(one) for one in (path, ROOT, os.environ.get("PYTHONPATH")) if one)
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": found, **({"MYPYPATH": f"{path}{os.pathsep}{ROOT}"} if path else {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{arguments[:3]}: {done.stdout[-4000:]} {done.stderr[-4000:]}"
    return done.stdout

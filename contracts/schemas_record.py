"""Records the JSON Schema of every call and event in ``contracts/schemas``: a change there is a change of contract.

    python -m contracts.schemas_record        (make schemas)

``tests/contract/test_schemas.py`` compares the code with what was recorded: a contract only grows, by optional keys.
"""

import importlib
import json
from pathlib import Path
from typing import Any

from contracts import events
from contracts.rpc import REGISTRY
from contracts.rpc.health import SERVICES

FOLDER = Path(__file__).parent / "schemas"


def current() -> dict[str, dict[str, Any]]:
    """Name of the file to what belongs into it, for every call and event of the code."""
    for service in (*SERVICES, "events"):
        importlib.import_module(f"contracts.rpc.{service}")
    found: dict[str, dict[str, Any]] = {}
    for name, rpc in REGISTRY.items():
        found[f"rpc.{name}.json"] = {"request": rpc.request.model_json_schema(), "response": rpc.response_schema()}
    for kind, event in events.REGISTRY.items():
        found[f"event.{kind}.json"] = {"data": event.model.model_json_schema()}
    found["event.envelope.json"] = {"data": events.Envelope.model_json_schema()}
    return found


def record() -> None:
    """Write them all; files of calls and events that are gone are removed."""
    FOLDER.mkdir(exist_ok=True)
    wanted = current()
    for path in FOLDER.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
    for name, schema in wanted.items():
        (FOLDER / name).write_text(json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    record()

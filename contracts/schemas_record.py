"""Records the JSON Schema of every call and event in ``contracts/schemas.json``: a change there is a change of contract.

    python -m contracts.schemas_record        (make schemas)

``tests/contract/docs/interface/test_schemas.py`` compares the code with what was recorded: a contract only grows, by optional
keys. Models are recorded once, under ``$defs``, without what only people read (titles, descriptions).
"""

import importlib
import json
from pathlib import Path
from typing import Any

from contracts import events
from contracts.envelope import Envelope
from contracts.rpc import REGISTRY
from contracts.rpc.health import SERVICES

FILE = Path(__file__).parent / "schemas.json"

_READ_BY_PEOPLE = ("title", "description")
_LINE = 128
_VALUES = ("default", "enum", "const")


def current() -> dict[str, Any]:
    """Collect the schemas of the code: ``calls`` (by name: ``request``, ``response``), ``events`` (by type), ``$defs``."""
    for service in (*SERVICES, "events", "operating"):
        importlib.import_module(f"contracts.rpc.{service}")
    models: dict[str, Any] = {}
    return {
        "calls": {
            name: {
                "request": _shared(rpc.request.model_json_schema(), models),
                "response": _shared(rpc.response_schema(), models),
            }
            for name, rpc in REGISTRY.items()
            if rpc.service in SERVICES  # tests have calls of their own
        },
        "events": {
            "envelope": _shared(Envelope.model_json_schema(), models),
            **{kind: _shared(event.model.model_json_schema(), models) for kind, event in events.REGISTRY.items()},
        },
        "$defs": models,
    }


def _shared(schema: dict[str, Any], models: dict[str, Any]) -> dict[str, Any]:
    """Move the models that a schema uses to ``models``. Raises ValueError when two models have one name."""
    for name, model in schema.pop("$defs", {}).items():
        if models.setdefault(name, _bare(model)) != _bare(model):
            raise ValueError(f"two models are called {name}: one of them needs another name")
    return dict(_bare(schema))


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {}
    for key, value in schema.items():
        if key == "properties":
            bare[key] = {name: _bare(item) for name, item in value.items()}
        elif key not in _READ_BY_PEOPLE:
            bare[key] = value if key in _VALUES else _bare(value)
    return bare


def record() -> None:
    """Write them."""
    FILE.write_text(_written(current()) + "\n")


def _written(value: Any, indent: str = "") -> str:
    """JSON with what fits on a line on one line, so that a change of one key is a change of one line."""
    short = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if not value or not isinstance(value, dict | list) or len(indent) + len(short) <= _LINE:
        return short
    deeper = indent + " "
    if isinstance(value, list):
        return "[\n" + ",\n".join(deeper + _written(item, deeper) for item in value) + f"\n{indent}]"
    pairs = (f"{deeper}{json.dumps(key)}: {_written(value[key], deeper)}" for key in sorted(value))
    return "{\n" + ",\n".join(pairs) + f"\n{indent}}}"


if __name__ == "__main__":
    record()

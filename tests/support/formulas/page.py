"""Formulas as the signing page computes them: its own modules, run by Node."""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from services.gateway.pages import texts

MODULES = Path(texts.__file__).parent / "static" / "form" / "values"

Ask = Callable[[dict[str, Any]], Any]

_PROGRAM = """
import { createInterface } from "node:readline";
import { decided } from "./conditions.js";
import { computed } from "./formulas.js";

function answer({ field, fields, documents, values }) {
  const valueOf = (uuid) => values[uuid] ?? null;
  if (field) return computed(field, field.tree, valueOf, (uuid) => fields.find((one) => one.uuid === uuid));
  const { hidden, computed: found, requires } = decided(fields, documents, valueOf);
  return { hidden: [...hidden].sort(), computed: Object.fromEntries(found), required: fields.filter(requires).map(({ uuid }) => uuid) };
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(answer(JSON.parse(line))));
"""


@contextlib.contextmanager
def computing(folder: Path) -> Iterator[Ask]:
    """Start the page's modules in ``folder``, an empty one. What is asked has ``fields`` and their ``values``, and ``field``
    (whose ``tree`` it is) for what that computes, or ``documents`` for what is decided of all of them."""
    for module in MODULES.glob("*.js"):
        shutil.copy(module, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "program.js").write_text(_PROGRAM)
    with subprocess.Popen(
        ["node", "program.js"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asking, answers = process.stdin, process.stdout

        def ask(asked: dict[str, Any]) -> Any:
            asking.write(json.dumps(asked) + "\n")
            asking.flush()
            return json.loads(answers.readline())

        try:
            yield ask
        finally:
            asking.close()
            process.wait(timeout=60)

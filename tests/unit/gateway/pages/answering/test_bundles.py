"""One script and one style sheet for each page: what modules mean is kept, and what is not known is refused."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from services.gateway.pages import texts
from services.gateway.pages.answering import bundles
from services.gateway.pages.answering.static_files import ENTRIES, FOR_OTHERS, MEDIA_TYPES, StaticFiles

STATIC = Path(texts.__file__).parent / "static"

MODULES = {
    "main.js": """// Says what all others have made.
import { counter, Kind as Sort, twice } from "./room/counter.js";
import "./effect.js";
import {
  later,
  shown,
} from "./room/shown.js";

const hidden = "main"; // each module has a name like this
const text = `import of ${`a ${hidden}`} // no comment`;
said.push(text, twice(counter), new Sort().name, shown("//"), await later());
""",
    "effect.js": 'import { said as all } from "./said.js";\nconst hidden = "effect";\nall.push(hidden);\n',
    "said.js": "export const said = (globalThis.said ??= []);\n",
    "room/counter.js": """import { shown } from "./shown.js";
const hidden = 20;
export const counter = hidden + 1;
export function twice(number) {
  return 2 * number;
}
export class Kind {
  #name = shown("kind");
  get name() {
    return this.#name;
  }
}
""",
    "room/shown.js": """import "../effect.js";
const hidden = /["'`/]+/g; /* a pattern that looks like the beginning of a text */
export const { left, right: other } = { left: "<", right: ">" };
export const shown = (text) => `${left}${text.replace(hidden, "!")}${other}`;
export async function later() {
  return "later";
}
""",
}
SAID = ["effect", "import of a main // no comment", 42, "<kind>", "<!>", "later"]


def run(script: str) -> object:
    """What a script leaves in ``said``, as Node runs it; nobody asks it for anything but modules."""
    program = f"{script}\nprocess.stdout.write(JSON.stringify(globalThis.said));"
    done = subprocess.run(
        ["node", "--input-type=module"], input=program, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_bundle_does_what_its_modules_do(tmp_path: Path) -> None:
    """Node runs both: the modules as they are written and the script made of them."""
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    assert run(f'await import("{(tmp_path / "main.js").as_uri()}");') == SAID
    assert run(bundles.script(MODULES, "main.js")) == SAID


def test_a_script_for_a_strangers_page_leaves_no_names_there() -> None:
    """Two of them on one page would be in each other's way."""
    modules = {name: text.replace("await later()", '"later"') for name, text in MODULES.items()}
    one = bundles.script(modules, "main.js", classic=True)
    assert run(one + one) == SAID + SAID


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({"a.js": 'import { b } from "./b.js";'}, "a.js imports b.js, which is not there"),
        ({"a.js": 'import { b } from "./b.js";', "b.js": 'import "./a.js";'}, "a.js imports itself, by way of b.js"),
        ({"a.js": 'import { b } from "./b.js";', "b.js": "const b = 1;"}, "a.js imports b, which b.js does not export"),
        ({"a.js": 'import b from "./b.js";'}, "a.js: `import`"),
        ({"a.js": 'import * as b from "./b.js";'}, "a.js: `import`"),
        ({"a.js": 'import { b } from "b";'}, "a.js: `import`"),
        ({"a.js": 'const b = () => import("./b.js");'}, r"a.js: `import\(`"),
        ({"a.js": "const here = import.meta.url;"}, r"a.js: `import.meta`"),
        ({"a.js": "export default 1;"}, "a.js: `export`"),
        ({"a.js": "export let changing = 1;"}, "a.js: `export`"),
        ({"a.js": "const b = 1;\nexport { b };"}, "a.js: `export`"),
        ({"a.js": 'export * from "./b.js";'}, "a.js: `export`"),
    ],
)
def test_what_cannot_be_put_into_one_file_is_refused(modules: dict[str, str], said: str) -> None:
    with pytest.raises(bundles.CannotBundle, match=said):
        bundles.script(modules, "a.js")


def test_a_style_sheet_holds_what_it_imports_in_order_and_its_pictures() -> None:
    files = {
        "sheets/a.css": '@import "../b.css";\n@import "../room/c.css";\np { color: red; }\n',
        "b.css": "/* first */\n.b { margin: 0; }\n",
        "room/c.css": '.c { background: url("../icons/i.svg"); }\n',
        "icons/i.svg": "<svg/>",
    }
    sheet = bundles.style_sheet(files, "sheets/a.css")
    assert sheet == '.b{margin:0}.c{background:url("data:image/svg+xml;base64,PHN2Zy8+")}p{color:red}'


def test_every_page_names_what_is_made_or_what_is_written() -> None:
    made, written = StaticFiles(), StaticFiles(as_modules=True)
    for entry in ENTRIES:
        assert re.fullmatch(r"[0-9a-f]{16}/[\w/]+\.min\.(js|css)", made.address(entry))
        assert written.address(entry).endswith(f"/{entry}")
    assert len({made.address(entry).partition("/")[0] for entry in ENTRIES}) == len(ENTRIES)


def test_every_script_that_there_is_belongs_to_a_page() -> None:
    """A module that nothing imports is one that was forgotten."""
    written = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.suffix in MEDIA_TYPES}
    reached = {*ENTRIES, *FOR_OTHERS}
    while (
        more := {
            bundles._resolved(path, found)
            for path in reached
            for found in re.findall(r'(?:from|import) "(\.[^"]+)"|url\("([^"]+\.svg)"\)', (STATIC / path).read_text())
            for found in found
            if found
        }
        - reached
    ):
        reached |= more
    assert written - reached == {"icon.svg"}

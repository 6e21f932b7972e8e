"""The reference of the API: what its pages say, where their links lead, and what samples send, read by parsers of others."""

import ast
import itertools
import json
import re
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from services.gateway.http.openapi import specification
from services.gateway.reference import guides, layout, markdown, samples, schemas
from services.gateway.reference.calls import Call, calls, parts, slug
from services.gateway.reference.files import File, addresses, files
from services.gateway.settings import Settings
from tests.support.judges.interfaces.references import anchors, links
from tests.support.services.secret_settings import KEY_ENCRYPTION_SECRET, LINK_SECRET

SETTINGS = Settings(
    base_url="https://sign.example.com",
    amqp_url="amqp://unused",
    blob_url="file:///nowhere",
    database_url="sqlite://",
    link_secret=LINK_SECRET,
    key_encryption_secret=KEY_ENCRYPTION_SECRET,
)
DOCUMENT = specification.published(SETTINGS)
CALLS = {call.id: call for call in calls(DOCUMENT)}
API = "https://sign.example.com/api"


@cache
def made() -> dict[str, File]:
    """All files of the reference. Whoever only collects this module's tests does not make them: it takes a second and more."""
    return files(SETTINGS)


SMALL: dict[str, Any] = {
    "info": {"title": "Small", "description": "Does little.\n\n**Keys** are long.\n"},
    "security": [{"apiKey": []}],
    "tags": [{"name": "Big things", "description": "Things | that are big."}],
    "paths": {
        "/things/{id}/copy": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "get": {
                "tags": ["Big things"],
                "operationId": "things.get",
                "summary": "A thing",
                "security": [],
                "responses": {"200": {"description": "Packed.", "content": {"application/zip": {}}}},
            },
        },
        "/things/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "put": {
                "tags": ["Big things"],
                "operationId": "things.update",
                "summary": "Change a thing",
                "description": "It is another one then.\n",
                "x-roles": ["admin", "editor"],
                "x-scope": "send",
                "x-mode": "test",
                "parameters": [
                    {"name": "dry", "in": "query", "example": True, "schema": {"type": "boolean", "default": False}},
                    {"name": "at", "in": "query", "required": True, "example": "a b", "schema": {"type": "string"}},
                    {
                        "name": "Repeat-Key",
                        "in": "header",
                        "description": "Safe to repeat. For a day.",
                        "schema": {"type": "string", "maxLength": 9},
                    },
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/NewThing"},
                            "example": {"name": "it's", "size": None, "on": True},
                        }
                    },
                },
                "responses": {
                    "200": {
                        "description": "The thing.",
                        "content": {
                            "application/json": {
                                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}},
                                "example": [{"id": 7}],
                            }
                        },
                    },
                    "422": {"description": "No."},
                    "default": {"description": "Other.", "content": {"text/csv": {"schema": {"type": "string"}}}},
                },
            },
        },
    },
    "components": {
        "parameters": {
            "id": {
                "name": "id",
                "in": "path",
                "required": True,
                "description": "Which.",
                "example": 7,
                "schema": {"$ref": "#/components/schemas/Id"},
            }
        },
        "schemas": {
            "Id": {"type": "integer", "minimum": 1, "maximum": 2**63 - 1},
            "NewThing": {
                "type": "object",
                "description": "A new one.",
                "x-wrapper": "thing",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 20, "nullable": True, "example": "x"},
                    "size": {"anyOf": [{"$ref": "#/components/schemas/Size"}, {"enum": [None]}]},
                    "on": {"type": "boolean", "description": "Whether\nit is on."},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}, "maxItems": 5},
                    "words": {"type": "object", "additionalProperties": {"type": "string", "format": "uri"}},
                },
            },
            "Size": {"type": "string", "enum": ["s", "m"]},
            "Part": {"type": "object", "properties": {"of": {"allOf": [{"$ref": "#/components/schemas/Thing"}]}}},
            "Thing": {"type": "object", "description": "It."},
            "Unused": {"type": "object"},
        },
    },
}

PAGE = """# Big things

Things | that are big.

Part of [the reference of the Small API](../reference.md).

| Call | What it does |
| --- | --- |
| `GET /things/{id}/copy` | [A thing](#a-thing) |
| `PUT /things/{id}` | [Change a thing](#change-a-thing) |

## A thing

`GET /things/{id}/copy`

**Who may call it:** anybody, without a key. [Try it](../docs#/Big%20things/things.get)

### Parameters

| Name | In | Type | Required | Description |
| --- | --- | --- | --- | --- |
| `id` | path | integer, 1 or more | yes | Which. For example `7`. |

### Samples

```sh
curl --fail-with-body 'https://x.example/api/things/7/copy' \\
  -o copy.zip
```
"""


def test_every_address_is_served_and_nothing_else() -> None:
    assert sorted(made()) == sorted(addresses())
    assert len(made()) == 2 * (len(DOCUMENT["tags"]) + 1) + 2 + 2 * (len(guides.guides()) + 1)


def test_they_are_the_same_whenever_they_are_made() -> None:
    """Also byte for byte: readers ask by entity tags whether something has changed."""
    assert files(SETTINGS) == made()


def test_guides_are_what_the_list_of_pages_has_for_who_writes_programs() -> None:
    pages = Path(guides.__file__).parents[3] / "docs"
    assert {"receiving", "coming-from-docuseal", "keys", "http", "errors", "bulk", "privacy"} <= guides.guides().keys()
    assert not {"install", "operators", "scale", "interface", "README"} & guides.guides().keys()
    for name, guide in guides.guides().items():
        source = (pages / f"{name}.md").read_text(encoding="utf-8")
        assert source.startswith(f"# {guide.title}\n")
        assert guide.summary
        assert "<!--" not in guide.source
        assert not re.search(r"!\[[^\]]*\]\(", guide.source), "no pictures"
        blocks = re.findall(r"^```.*?^```$", source, re.MULTILINE | re.DOTALL)
        assert re.findall(r"^```.*?^```$", guide.source, re.MULTILINE | re.DOTALL) == blocks, "code is as it was"
        words = re.sub(r"\W+", "", re.sub(r"<!--.*?-->|\]\([^)]*\)", "", source))
        assert re.sub(r"\W+", "", re.sub(r"\]\([^)]*\)", "", guide.source)) == words, "nothing is lost but links"
    page = made()["/guides/keys"].body.decode()
    assert "<details" not in page, "a block of code is no sample of a call"
    assert "<br>" in page
    assert "&lt;br&gt;" not in page
    assert 'aria-current="page">API keys</a><ul><li><a href="#what-a-key-may-do">' in page


def test_descriptions_lead_to_the_guides_that_they_name() -> None:
    given = {
        "description": "See `docs/keys.md`, docs/README.md (docs/http.md).",
        "x": ["docs/keys.md", {"description": 1}],
    }
    assert guides.linked(given, "https://x.example") == {
        "description": "See [docs/keys.md](https://x.example/guides/keys), docs/README.md "
        "([docs/http.md](https://x.example/guides/http)).",
        "x": ["docs/keys.md", {"description": 1}],
    }
    whole = json.dumps(DOCUMENT)
    named = set(re.findall(r"docs/([a-z-]+)\.md", whole))
    assert named <= guides.guides().keys(), "a description names no page that an installation does not serve"
    assert "(https://sign.example.com/guides/testing)" in made()["/reference.md"].body.decode()


def test_types_in_words() -> None:
    words = "abcdefghijklmnop"
    named: dict[str, Any] = {"Few": {"enum": [*words[: schemas._FEW]]}, "Many": {"enum": [*words[: schemas._FEW + 1]]}}
    named["Either"] = {"anyOf": [{"$ref": "#/components/schemas/Few"}, {"enum": [None]}]}
    document = {"components": {"schemas": named}}
    refer = "#/components/schemas/"
    few = ", ".join(f"`{word}`" for word in words[: schemas._FEW - 1]) + f" or `{words[schemas._FEW - 1]}`"
    assert schemas.type_of(document, {"$ref": refer + "Few"}) == few
    assert schemas.type_of(document, {"$ref": refer + "Many"}) == "[Many](#many)"
    assert schemas.type_of(document, {"$ref": refer + "Either"}) == "[Either](#either)"
    assert (
        schemas.type_of(document, {"anyOf": [{"type": "string"}, {"enum": [None]}], "nullable": True})
        == "string or null"
    )
    assert schemas.type_of(document, {"type": "integer", "maximum": schemas._NO_LIMIT}) == "integer"
    assert schemas.type_of(document, {"type": "integer", "maximum": schemas._NO_LIMIT - 1}).startswith("integer, up to")
    assert schemas.named_schemas(document, [None, {"$ref": refer + "Either"}, {"$ref": "#/elsewhere/Many"}]) == [
        "Either"
    ]
    assert schemas._key_text({"description": "ä.", "example": {"a": "ü"}}) == 'ä. For example `{"a": "ü"}`.'
    assert schemas._key_text({"example": None}) == ""


def test_every_call_is_told_of_with_its_samples() -> None:
    operations = {operation.id: operation for operation in specification.operations(DOCUMENT)}
    assert CALLS.keys() == operations.keys()
    whole = "".join(made()[address].body.decode() for address in made() if address.startswith("/reference/"))
    for operation in operations.values():
        tag = slug(operation.definition["tags"][0])
        page = made()[f"/reference/{tag}.md"].body.decode()
        told = page.partition(f"\n## {operation.definition['summary']}\n")[2].partition("\n## ")[0]
        assert f"`{operation.method.upper()} {operation.path}`" in told
        for fence in ("sh", "python", "js", "php"):
            assert f"```{fence}\n" in told, operation.id
        for role in operation.roles:
            assert f"`{role.value}`" in told
    assert whole.count("<details") == 4 * len(operations)


def test_links_and_anchors_of_pages_lead_somewhere() -> None:
    """Those of Markdown to the heading that is named as they are."""
    trees = {
        address: lxml.html.document_fromstring(file.body.decode())
        for address, file in made().items()
        if file.media_type.startswith(b"text/html")
    }
    elsewhere = {"/docs", "/docs/errors", "/openapi.json", "/openapi-3.1.json"}
    named = {}
    for address, tree in trees.items():
        identifiers = tree.xpath("//@id")
        named[address] = set(identifiers)
        assert len(identifiers) == len(named[address]), address
    asked = 0
    for address, tree in trees.items():
        for target in tree.xpath("//a/@href | //link/@href"):
            parsed = urlsplit(urljoin(f"https://sign.example.com{address}", target))
            if parsed.netloc != "sign.example.com":
                assert address.startswith("/guides/"), target
                assert parsed.scheme == "https", target
                continue
            assert parsed.path in elsewhere or parsed.path in made(), f"{address}: {target}"
            if parsed.fragment and parsed.path in trees:
                asked += 1
                assert unquote(parsed.fragment) in named[parsed.path], f"{address}: {target}"
    assert asked > 1000
    sources = {address: file.body.decode() for address, file in made().items() if address.endswith(".md")}
    headings = {address: anchors(source) for address, source in sources.items()}
    for address, source in sources.items():
        for target, words in links(source):
            parsed = urlsplit(urljoin(f"https://sign.example.com{address}", target))
            if parsed.netloc != "sign.example.com" and address.startswith("/guides/"):
                continue
            assert parsed.path in elsewhere or parsed.path in made(), f"{address}: {target}"
            if parsed.fragment and parsed.path in sources:
                heading = headings[parsed.path].get(unquote(parsed.fragment))
                in_words = address.startswith("/guides") or words == "More"  # and not by its name
                assert heading == words or (in_words and heading), f"{address}: {target}"


def test_pages_have_no_script_no_style_within_and_nothing_from_elsewhere() -> None:
    for address, file in made().items():
        if file.media_type.startswith(b"text/html"):
            tree = lxml.html.document_fromstring(file.body.decode())
            assert not tree.xpath("//script | //style | //@style | //@src | //iframe | //form"), address
            assert not [name for name in tree.xpath("//@*") if name.attrname.startswith("on")]
            assert len(tree.xpath("//h1")) == 1
            assert tree.xpath("string(//title)").strip()


def test_llms_txt_is_what_llmstxt_org_says() -> None:
    """A heading, a quotation, words without headings, then sections with lists of links, each with its description."""
    text = made()["/llms.txt"].body.decode()
    tokens = MarkdownIt().parse(text)
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h1", "h2", "h2", "h2"]
    assert [token.type for token in tokens if token.level == 0 and token.nesting == 1][:2] == [
        "heading_open",
        "blockquote_open",
    ]
    listed = re.findall(r"^- \[([^\]]+)\]\((https://sign\.example\.com(/[^)]+))\): \S.*$", text, re.MULTILINE)
    assert (
        len(listed) == len(re.findall(r"^- ", text, re.MULTILINE)) == len(DOCUMENT["tags"]) + 3 + len(guides.guides())
    )
    assert [path for _, _, path in listed if path not in made()] == ["/openapi.json", "/openapi-3.1.json"]


def test_a_page_of_a_small_document() -> None:
    page = markdown.pages(SMALL, "https://x.example/api")["big-things"]
    first, _, rest = page.partition("\n```python")
    assert first.rstrip() + "\n" == PAGE
    told = rest.partition("## Change a thing\n\n")[2]
    assert told.partition("### Samples")[0] == (
        "`PUT /things/{id}`\n\nIt is another one then.\n\n"
        "**Who may call it:** users with the role `admin` or `editor`, with a key of the scope `send`, for test keys only, "
        "not for keys that are limited to folders. "
        "[Try it](../docs#/Big%20things/things.update)\n\n"
        "### Parameters\n\n"
        "| Name | In | Type | Required | Description |\n| --- | --- | --- | --- | --- |\n"
        "| `id` | path | integer, 1 or more | yes | Which. For example `7`. |\n"
        "| `dry` | query | boolean | no | `false` when absent. For example `true`. |\n"
        "| `at` | query | string | yes | For example `a b`. |\n"
        "| `Repeat-Key` | header | string, up to 9 characters | no | Safe to repeat. [More](../reference.md#repeat-key) |\n\n"
        "### Body\n\n"
        "`application/json`, required.\n\nA new one.\n\nThe keys may also stand in an object under the key `thing`.\n\n"
        "| Key | Type | Required | Description |\n| --- | --- | --- | --- |\n"
        "| `name` | string or null, 1 to 20 characters | yes | For example `x`. |\n"
        "| `size` | `s`, `m` or null | no |  |\n"
        "| `on` | boolean | no | Whether it is on. |\n"
        "| `parts` | list of [Part](#part), up to 5 items | no |  |\n"
        "| `words` | object, each value string (uri) | no |  |\n\n"
    )
    assert told.partition("### Answers\n\n")[2] == (
        "| Status | When | Content |\n| --- | --- | --- |\n"
        "| `200` | The thing. | list of [Thing](#thing) |\n"
        "| `422` | No. | nothing |\n"
        "| others | Other. | string (`text/csv`) |\n\n"
        'An example of `200`:\n\n```json\n[\n  {\n    "id": 7\n  }\n]\n```\n\n'
        "## Schemas\n\n"
        "### Part\n\n| Key | Type | Required | Description |\n| --- | --- | --- | --- |\n| `of` | [Thing](#thing) | no |  |\n\n"
        "### Thing\n\nIt.\n\nType: object.\n"
    )


def test_the_page_of_all_calls_of_a_small_document() -> None:
    index = markdown.pages(SMALL, "https://x.example/api")[markdown.INDEX]
    assert index.startswith(
        "# Small API\n\nDoes little.\n\n**Keys** are long.\n\nThe address of the API is `https://x.example/api`."
    )
    assert index.partition("(docs/errors).\n\n")[2] == (
        "## Big things\n\nThings | that are big. [Read more](reference/big-things.md)\n\n"
        "| Call | What it does |\n| --- | --- |\n"
        "| `GET /things/{id}/copy` | [A thing](reference/big-things.md#a-thing) |\n"
        "| `PUT /things/{id}` | [Change a thing](reference/big-things.md#change-a-thing) |\n\n"
        "## Headers\n\nCalls name those of these that they take.\n\n### Repeat-Key\n\nSafe to repeat. For a day.\n"
    )


def shell_words(command: str) -> list[str]:
    """The words of a command, whose lines end with a backslash."""
    return shlex.split(command.replace(" \\\n", " "))


SENT = {"name": "it's", "size": None, "on": True}
URL = "https://x.example/api/things/7?at=a%20b"


def test_samples_of_a_small_document() -> None:
    get, change = calls(SMALL)
    written = {language.name: language.write(SMALL, change, "https://x.example/api") for language in samples.LANGUAGES}
    words = shell_words(written["Shell"])
    assert words[:6] == ["curl", "--fail-with-body", "-X", "PUT", URL, "-H"]
    assert words[6:10] == ["X-Auth-Token: $COUNTERSIGN_API_KEY", "-H", "Content-Type: application/json", "-d"]
    assert json.loads(words[10]) == SENT
    assert written["Python"] == (
        "import os\n\nimport requests\n\nanswer = requests.put(\n"
        f'    "{URL}",\n'
        '    headers={"X-Auth-Token": os.environ["COUNTERSIGN_API_KEY"]},\n'
        '    json={"name": "it\'s", "size": None, "on": True},\n'
        "    timeout=60,\n)\nanswer.raise_for_status()\nprint(answer.json())"
    )
    assert written["JavaScript"] == (
        f'const answer = await fetch("{URL}", {{\n  method: "PUT",\n'
        '  headers: { "X-Auth-Token": process.env.COUNTERSIGN_API_KEY, "Content-Type": "application/json" },\n'
        '  body: JSON.stringify({"name": "it\'s", "size": null, "on": true}),\n});\n'
        "if (!answer.ok) throw new Error(await answer.text());\nconsole.log(await answer.json());"
    )
    assert written["PHP"] == (
        "<?php\n$context = stream_context_create(['http' => [\n    'method' => 'PUT',\n"
        "    'header' => ['X-Auth-Token: ' . getenv('COUNTERSIGN_API_KEY'), 'Content-Type: application/json'],\n"
        "    'content' => json_encode(['name' => 'it\\'s', 'size' => null, 'on' => true]),\n"
        "    'ignore_errors' => true,\n]]);\n"
        f"$answer = file_get_contents('{URL}', false, $context);\necho $answer;"
    )
    saved = {language.name: language.write(SMALL, get, "https://x.example/api") for language in samples.LANGUAGES}
    assert saved["Python"].endswith('with open("copy.zip", "wb") as file:\n    file.write(answer.content)')
    assert saved["JavaScript"] == (
        'import { writeFile } from "node:fs/promises";\n\n'
        'const answer = await fetch("https://x.example/api/things/7/copy");\n'
        "if (!answer.ok) throw new Error(await answer.text());\n"
        'await writeFile("copy.zip", Buffer.from(await answer.arrayBuffer()));'
    )
    assert "ignore_errors" not in saved["PHP"]
    assert saved["PHP"].endswith("file_put_contents('copy.zip', $answer);")


WIDE = {"name": "w" * 70, "sizes": [1, 2], "none": {}, "text": "a\n$b"}
FORM: dict[str, Any] = {
    "info": {"title": "Form", "description": ""},
    "security": [{"apiKey": []}],
    "tags": [{"name": "Rows", "description": "Rows."}],
    "paths": {
        "/rows": {
            "post": {
                "tags": ["Rows"],
                "operationId": "rows.create",
                "summary": "Add rows",
                "deprecated": True,
                "x-deprecated": {"since": "2026-12-01", "sunset": "2027-12-31"},
                "x-roles": ["admin"],
                "x-scope": "any",
                "x-folders": True,
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "required": ["rows", "picture"],
                                "properties": {
                                    "rows": {"type": "string", "format": "binary"},
                                    "picture": {"type": "string", "format": "binary", "example": None},
                                    "settings": {"type": "object"},
                                    "note": {"type": "string"},
                                    "unsaid": {"type": "string"},
                                },
                            },
                            "example": {"rows": "a,b", "settings": WIDE, "note": "ä $x\nit's"},
                        },
                    }
                },
                "responses": {
                    "200": {
                        "description": "Done.",
                        "content": {"text/plain": {"schema": {"type": "string"}, "example": "ä 3\n"}},
                    }
                },
            },
            "delete": {
                "tags": ["Rows"],
                "operationId": "rows.remove",
                "summary": "Remove rows",
                "deprecated": True,
                "x-deprecated": {"since": "2026-12-01"},
                "x-scope": "webhooks",
                "requestBody": {"content": {"text/csv": {"schema": {"type": "string", "minLength": 1}}}},
                "responses": {"200": {"description": "Gone."}},
            },
        }
    },
    "components": {"schemas": {}},
}
FORM_SAMPLES = {
    "Shell": """curl --fail-with-body -X POST 'https://x.example/api/rows' \\
  -H "X-Auth-Token: $COUNTERSIGN_API_KEY" \\
  -F 'rows=@rows.csv' \\
  -F 'picture=@document.pdf' \\
  --form-string 'settings={"name": "WIDE", "sizes": [1, 2], "none": {}, "text": "a\\n$b"}' \\
  --form-string 'note=ä $x
it'\\''s'""",
    "Python": """import json
import os

import requests

answer = requests.post(
    "https://x.example/api/rows",
    headers={"X-Auth-Token": os.environ["COUNTERSIGN_API_KEY"]},
    data={"settings": json.dumps({
        "name": "WIDE",
        "sizes": [1, 2],
        "none": {},
        "text": "a\\n$b",
    }), "note": "ä $x\\nit's"},
    files={"rows": open("rows.csv", "rb"), "picture": open("document.pdf", "rb")},
    timeout=60,
)
answer.raise_for_status()
print(answer.text)""",
    "JavaScript": """import { readFile } from "node:fs/promises";

const form = new FormData();
form.append("rows", new Blob([await readFile("rows.csv")]), "rows.csv");
form.append("picture", new Blob([await readFile("document.pdf")]), "document.pdf");
form.append("settings", JSON.stringify({
  "name": "WIDE",
  "sizes": [1, 2],
  "none": {},
  "text": "a\\n$b"
}));
form.append("note", "ä $x\\nit's");
const answer = await fetch("https://x.example/api/rows", {
  method: "POST",
  headers: { "X-Auth-Token": process.env.COUNTERSIGN_API_KEY },
  body: form,
});
if (!answer.ok) throw new Error(await answer.text());
console.log(await answer.text());""",
    "PHP": """<?php
$boundary = bin2hex(random_bytes(16));
$body = '';
$parts = [
    'name="rows"; filename="rows.csv"' => file_get_contents('rows.csv'),
    'name="picture"; filename="document.pdf"' => file_get_contents('document.pdf'),
    'name="settings"' => json_encode([
        'name' => 'WIDE',
        'sizes' => [1, 2],
        'none' => new stdClass(),
        'text' => "a\\n\\$b",
    ]),
    'name="note"' => "ä \\$x\\nit's",
];
foreach ($parts as $head => $content) {
    $body .= "--$boundary\\r\\nContent-Disposition: form-data; $head\\r\\n\\r\\n$content\\r\\n";
}
$context = stream_context_create(['http' => [
    'method' => 'POST',
    'header' => ['X-Auth-Token: ' . getenv('COUNTERSIGN_API_KEY'), "Content-Type: multipart/form-data; boundary=$boundary"],
    'content' => "$body--$boundary--\\r\\n",
    'ignore_errors' => true,
]]);
$answer = file_get_contents('https://x.example/api/rows', false, $context);
echo $answer;""",
}


def test_samples_of_a_form() -> None:
    """Files, one of which is told of by its content; a text of two lines; and JSON that is too wide for one."""
    post = next(call for call in calls(FORM) if call.method == "POST")
    for language in samples.LANGUAGES:
        written = language.write(FORM, post, "https://x.example/api")
        assert written.replace("w" * 70, "WIDE") == FORM_SAMPLES[language.name]
    only_files = replace(post, bodies=(replace(post.bodies[0], example={"rows": "a,b"}),))
    assert "data=" not in samples.python(FORM, only_files, "https://x.example/api")
    assert "import json" not in samples.python(FORM, only_files, "https://x.example/api")


def test_the_page_of_a_form_and_of_calls_that_are_to_go() -> None:
    page = markdown.pages(FORM, "https://x.example/api")["rows"]
    added, _, removed = page.partition("## Remove rows\n\n")
    assert "`POST /rows`\n\n**Deprecated** since 2026-12-01, and gone from 2027-12-31 on.\n\n" in added
    assert "**Who may call it:** users with the role `admin`, with any key. [Try it]" in added
    assert "`multipart/form-data`, may be left out.\n\n| Key | Type" in added
    assert "| `picture` | file | yes |  |\n" in added
    assert "An example of `200`:\n\n```\nä 3\n```" in added
    assert removed.startswith("`DELETE /rows`\n\n**Deprecated** since 2026-12-01.\n\n**Who may call it:** every user, ")
    assert "with a key of the scope `webhooks`. [Try it]" in removed, "which no key of folders has"
    assert "`text/csv`, may be left out: string, 1 character or more." in removed


@pytest.mark.parametrize("length", [79, 80, 81])
def test_what_fits_stands_in_one_line(length: int) -> None:
    """In each language, as far as its lines are indented by then."""
    for how, depth, width in ((samples._JAVASCRIPT, 0, 2), (samples._PYTHON, 1, 4), (samples._PHP, 1, 4)):
        value = ["x" * (length - len('[""]') - depth * width)]
        text = samples._literal(value, how, depth)
        assert ("\n" in text) is (length > samples._WIDTH)
        if "\n" in text:
            first, item, last = text.split("\n")
            assert (first, last) == ("[", " " * depth * width + "]")
            assert len(item) - len(item.lstrip()) == (depth + 1) * width
    assert samples._literal([["y" * 100]], samples._PYTHON, 1).splitlines()[2].startswith(" " * 12 + '"')
    assert samples._literal("z" * 200, samples._JAVASCRIPT, 0) == json.dumps("z" * 200)
    assert samples._literal({}, samples._PHP, 40) == "new stdClass()"


@pytest.mark.parametrize("call", [call for call in CALLS.values() if call.body], ids=lambda call: call.id)
def test_a_sample_sends_the_example_of_the_document(call: Call) -> None:
    body = call.body
    assert body is not None
    words = shell_words(samples.shell(DOCUMENT, call, API))
    tree = ast.parse(samples.python(DOCUMENT, call, API))
    given = {
        keyword.arg: keyword.value for node in ast.walk(tree) if isinstance(node, ast.Call) for keyword in node.keywords
    }
    if body.media_type == "application/json":
        assert json.loads(words[words.index("-d") + 1]) == body.example
        assert ast.literal_eval(given["json"]) == body.example
    else:
        assert body.media_type == "multipart/form-data"
        sent = [word.partition("=") for before, word in itertools.pairwise(words) if before in ("-F", "--form-string")]
        assert [(name, file) for name, _, file in parts(DOCUMENT, body)] == [
            (name, value.removeprefix("@") if value.startswith("@") else "") for name, _, value in sent
        ]
        assert {"files"} <= given.keys()


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(), below, max_size=4),
    max_leaves=30,
))  # fmt: skip
def test_any_value_is_the_same_in_python_and_json(value: Any) -> None:
    assert ast.literal_eval(samples._literal(value, samples._PYTHON, 1)) == value
    assert json.loads(samples._literal(value, samples._JAVASCRIPT, 0)) == value


def test_a_choice_of_many_words_has_a_section_and_one_of_few_has_none() -> None:
    assert "EventKind" in schemas.named_schemas(DOCUMENT, [{"$ref": "#/components/schemas/EventKind"}])
    assert schemas.named_schemas(DOCUMENT, [{"$ref": "#/components/schemas/SubmissionStatus"}]) == []
    assert schemas.table(("A",), [("x | y\n z",)]) == "| A |\n| --- |\n| x \\| y z |"


def test_one_sample_of_a_call_is_open_at_a_time() -> None:
    source = "# T\n\n## A\n\n```sh\na <b>\n```\n\n```php\nb\n```\n\n```json\n1\n```\n\n## A\n\n```sh\nc\n```\n"
    entries = [layout.Entry("All", "../reference", True, [("A <b>", "a")])]
    page = layout.page(source, title="T & U", root="../", markdown="t.md", entries=entries)
    tree = lxml.html.document_fromstring(page)
    assert [
        (one.get("name"), one.get("open") is not None, one.findtext("summary")) for one in tree.iter("details")
    ] == [
        ("samples-1", True, "Shell"),
        ("samples-1", False, "PHP"),
        ("samples-2", True, "Shell"),
    ]
    assert [code.text for code in tree.xpath("//pre/code")] == ["a <b>\n", "b\n", "1\n", "c\n"]
    assert tree.xpath("//main/descendant::*/@id") == ["t", "a", "a-1"]
    assert tree.xpath("string(//title)") == "T & U"
    assert tree.xpath("//nav[@aria-label='Contents']//a[@aria-current='page']/@href") == ["../reference"]
    assert tree.xpath("string(//nav[@aria-label='Contents']//ul//ul)") == "A <b>"

"""The same call in four languages, to be copied: with the key of the environment, and what the document has as its example.

None needs more than its language brings along, but for ``requests``, which is what Python's readers expect.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from services.gateway.reference.calls import FORM, JSON, Body, Call, Document, parts

KEY = "COUNTERSIGN_API_KEY"
"""The environment variable in which the samples look for the API key."""

_WIDTH = 80
"""Characters up to which a value stands in one line."""


class Language(NamedTuple):
    """A language of samples. ``fence`` is what Markdown calls it, ``suffix`` how its files end."""

    name: str
    fence: str
    suffix: str
    write: Callable[[Document, Call, str], str]


class _Literals(NamedTuple):
    """How a language writes what JSON can say."""

    words: tuple[str, str, str]  # true, false, null
    text: Callable[[str], str]
    mapping: tuple[str, str, str]  # its beginning, what is between key and value, its end
    empty: str  # a mapping without keys
    indent: str
    last_comma: str  # after the last item of several lines


def shell(document: Document, call: Call, base_url: str) -> str:
    """Return the call for curl, which ends with an error when it is refused."""
    lines = ["curl --fail-with-body" + ("" if call.method == "GET" else f" -X {call.method}")]
    lines[0] += f" {_shell_text(base_url + call.example_path)}"
    if call.needs_key:
        lines.append(f'-H "X-Auth-Token: ${KEY}"')
    body = call.body
    if body is not None and body.media_type == FORM:
        for name, example, file in parts(document, body):
            written = f"{name}=@{file}" if file else f"{name}={_field(example)}"
            lines.append(f"-{'F' if file else '-form-string'} {_shell_text(written)}")
    elif body is not None:
        lines += [f"-H 'Content-Type: {body.media_type}'", f"-d {_shell_text(_json(_example(body)))}"]
    if call.saved_as:
        lines.append(f"-o {call.saved_as}")
    return " \\\n  ".join(lines)


def python(document: Document, call: Call, base_url: str) -> str:
    """Return the call for ``requests``."""
    arguments = [f"{_quoted(base_url + call.example_path)},"]
    if call.needs_key:
        arguments.append(f'headers={{"X-Auth-Token": os.environ["{KEY}"]}},')
    body = call.body
    if body is not None and body.media_type == FORM:
        fields = [
            f"{_quoted(name)}: {_python_field(example)}" for name, example, file in parts(document, body) if not file
        ]
        files = [f'{_quoted(name)}: open({_quoted(file)}, "rb")' for name, _, file in parts(document, body) if file]
        arguments += [f"data={{{', '.join(fields)}}},"] if fields else []
        arguments += [f"files={{{', '.join(files)}}},"]
    elif body is not None:
        arguments.append(f"json={_literal(_example(body), _PYTHON, 1)},")
    modules = [name for name in ("json", "os") if any(f"{name}." in argument for argument in arguments)]
    lines = ["\n".join(f"import {name}" for name in modules) + "\n"] if modules else []
    lines.append("import requests\n")
    lines.append(f"answer = requests.{call.method.lower()}(")
    lines += [f"    {argument}" for argument in [*arguments, "timeout=60,"]]
    lines += [")", "answer.raise_for_status()"]
    if call.saved_as:
        lines += [f'with open("{call.saved_as}", "wb") as file:', "    file.write(answer.content)"]
    else:
        lines.append(f"print(answer.{'json()' if call.answer.media_type == JSON else 'text'})")
    return "\n".join(lines)


def javascript(document: Document, call: Call, base_url: str) -> str:
    """Return the call for ``fetch``, as a module of Node.js."""
    before, headers, options = [], [], []
    if call.needs_key:
        headers.append(f'"X-Auth-Token": process.env.{KEY}')
    if call.method != "GET":
        options.append(f"method: {_quoted(call.method)}")
    body = call.body
    if body is not None and body.media_type == FORM:
        before.append("const form = new FormData();")
        for name, example, file in parts(document, body):
            value = (
                f"new Blob([await readFile({_quoted(file)})]), {_quoted(file)}" if file else _javascript_field(example)
            )
            before.append(f"form.append({_quoted(name)}, {value});")
        options.append("body: form")
    elif body is not None:
        headers.append(f'"Content-Type": {_quoted(body.media_type)}')
        options.append(f"body: JSON.stringify({_literal(_example(body), _JAVASCRIPT, 1)})")
    if headers:
        options.insert(len(options) - (body is not None), f"headers: {{ {', '.join(headers)} }}")
    used = ["readFile"] if "readFile" in "".join(before) else []
    used += ["writeFile"] if call.saved_as else []
    lines = [f'import {{ {", ".join(used)} }} from "node:fs/promises";\n'] if used else []
    url = _quoted(base_url + call.example_path)
    lines += before
    lines += (
        [f"const answer = await fetch({url}, {{", *(f"  {option}," for option in options), "});"] if options else []
    )
    lines += [] if options else [f"const answer = await fetch({url});"]
    lines.append("if (!answer.ok) throw new Error(await answer.text());")
    if call.saved_as:
        lines.append(f"await writeFile({_quoted(call.saved_as)}, Buffer.from(await answer.arrayBuffer()));")
    else:
        lines.append(f"console.log(await answer.{'json' if call.answer.media_type == JSON else 'text'}());")
    return "\n".join(lines)


def php(document: Document, call: Call, base_url: str) -> str:
    """Return the call for PHP's own streams, which need no extension."""
    before, headers, options = [], [], []
    if call.needs_key:
        headers.append(f"'X-Auth-Token: ' . getenv('{KEY}')")
    if call.method != "GET":
        options.append(f"'method' => '{call.method}'")
    body = call.body
    if body is not None and body.media_type == FORM:
        before.append("$boundary = bin2hex(random_bytes(16));\n$body = '';\n$parts = [")
        for name, example, file in parts(document, body):
            head = f'name="{name}"' + (f'; filename="{file}"' if file else "")
            content = f"file_get_contents({_php_text(file)})" if file else _php_field(example)
            before.append(f"    {_php_text(head)} => {content},")
        before += [
            "];",
            "foreach ($parts as $head => $content) {",
            '    $body .= "--$boundary\\r\\nContent-Disposition: form-data; $head\\r\\n\\r\\n$content\\r\\n";',
            "}",
        ]
        headers.append('"Content-Type: multipart/form-data; boundary=$boundary"')
        options.append("'content' => \"$body--$boundary--\\r\\n\"")
    elif body is not None:
        headers.append(f"'Content-Type: {body.media_type}'")
        options.append(f"'content' => json_encode({_literal(_example(body), _PHP, 1)})")
    if headers:
        options.insert(len(options) - (body is not None), f"'header' => [{', '.join(headers)}]")
    if not call.saved_as:
        options.append("'ignore_errors' => true")
    lines = ["<?php", *before, "$context = stream_context_create(['http' => ["]
    lines += [f"    {option}," for option in options]
    lines += ["]]);", f"$answer = file_get_contents({_php_text(base_url + call.example_path)}, false, $context);"]
    lines.append(f"file_put_contents('{call.saved_as}', $answer);" if call.saved_as else "echo $answer;")
    return "\n".join(lines)


LANGUAGES = (
    Language("Shell", "sh", ".sh", shell),
    Language("Python", "python", ".py", python),
    Language("JavaScript", "js", ".mjs", javascript),
    Language("PHP", "php", ".php", php),
)


def _example(body: Body) -> Any:
    return {} if body.example is None else body.example


def _field(example: Any) -> str:
    """Return a field of a form: text as it stands, all else as JSON."""
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)


def _python_field(example: Any) -> str:
    return _quoted(example) if isinstance(example, str) else f"json.dumps({_literal(example, _PYTHON, 1)})"


def _javascript_field(example: Any) -> str:
    return _quoted(example) if isinstance(example, str) else f"JSON.stringify({_literal(example, _JAVASCRIPT, 0)})"


def _php_field(example: Any) -> str:
    return _php_text(example) if isinstance(example, str) else f"json_encode({_literal(example, _PHP, 1)})"


def _json(value: Any) -> str:
    """Return JSON for people: what fits stands in one line."""
    return _literal(value, _JAVASCRIPT, 0)


def _literal(value: Any, how: _Literals, depth: int) -> str:
    """Return the value in a language: in one line where it fits. ``depth``: how many steps the line is indented."""
    flat = _flat(value, how)
    if len(flat) + len(how.indent) * depth <= _WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    indent, end = how.indent * (depth + 1), how.indent * depth
    if isinstance(value, dict):
        first, between, last = how.mapping
        items = [f"{how.text(str(key))}{between}{_literal(item, how, depth + 1)}" for key, item in value.items()]
    else:
        first, last = "[", "]"
        items = [_literal(item, how, depth + 1) for item in value]
    return f"{first}\n" + ",\n".join(f"{indent}{item}" for item in items) + f"{how.last_comma}\n{end}{last}"


def _flat(value: Any, how: _Literals) -> str:
    match value:
        case None:
            return how.words[2]
        case bool():
            return how.words[0] if value else how.words[1]
        case str():
            return how.text(value)
        case dict():
            first, between, last = how.mapping
            items = ", ".join(f"{how.text(str(key))}{between}{_flat(item, how)}" for key, item in value.items())
            return f"{first}{items}{last}" if value else how.empty
        case list():
            return f"[{', '.join(_flat(item, how) for item in value)}]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    """Return a text for JSON, which Python and JavaScript read as it stands."""
    return json.dumps(text, ensure_ascii=False)


def _shell_text(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _php_text(text: str) -> str:
    """Return a text in single quotes; one with line ends in double ones, where they are written as such."""
    if "\n" in text:
        return json.dumps(text, ensure_ascii=False).replace("$", "\\$")
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_JAVASCRIPT = _Literals(("true", "false", "null"), _quoted, ("{", ": ", "}"), "{}", "  ", "")
_PYTHON = _Literals(("True", "False", "None"), _quoted, ("{", ": ", "}"), "{}", "    ", ",")
_PHP = _Literals(("true", "false", "null"), _php_text, ("[", " => ", "]"), "new stdClass()", "    ", ",")

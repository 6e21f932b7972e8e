"""What the schemas of the document say, in words and tables of Markdown."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from services.gateway.reference.calls import Call, Document, Parameter, resolved, slug

_FEW = 10
"""So many words of a choice stand where it is used; one of more has a section of its own."""
_NO_LIMIT = 2**62
"""From here on a number is as large as it can be stored, which is no limit for readers."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown. Cells stand in one line, whatever is in them."""
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def parameters(document: Document, call: Call, index: str) -> str:
    """Return the table of a call's parameters. ``index`` is the page that tells the rest of headers, which many calls take."""
    return table(
        ("Name", "In", "Type", "Required", "Description"),
        (
            (
                f"`{parameter.name}`",
                parameter.place,
                type_of(document, parameter.schema),
                "yes" if parameter.required else "no",
                _header_text(parameter, index) if parameter.place == "header" else _parameter_text(parameter),
            )
            for parameter in call.parameters
        ),
    )


def keys(document: Document, schema: Document) -> str:
    """Return the table of an object's keys, or "" where it has none of its own."""
    schema = resolved(document, schema)
    required = schema.get("required", ())
    return (
        table(
            ("Key", "Type", "Required", "Description"),
            (
                (
                    f"`{name}`",
                    type_of(document, key),
                    "yes" if name in required else "no",
                    _key_text(key),
                )
                for name, key in schema["properties"].items()
            ),
        )
        if schema.get("properties")
        else ""
    )


def section(document: Document, name: str) -> str:
    """Return the section of a named schema, with its heading."""
    schema = document["components"]["schemas"][name]
    text = (
        object_text(document, schema)
        or f"{schema.get('description', '')}\n\nType: {type_of(document, schema)}.".strip()
    )
    return f"### {name}\n\n{text}"


def object_text(document: Document, schema: Document) -> str:
    """Return what there is to say of an object with keys of its own: "" of anything else."""
    schema = resolved(document, schema)
    if not (rows := keys(document, schema)):
        return ""
    paragraphs = [schema.get("description", "").strip()]
    if wrapper := schema.get("x-wrapper"):
        paragraphs.append(f"The keys may also stand in an object under the key `{wrapper}`.")
    return "\n\n".join(part for part in [*paragraphs, rows] if part)


def below(document: Document, schema: Document) -> list[Document]:
    """Return the schemas of an object's keys, where it has some that are told in its place, or else itself."""
    whole = resolved(document, schema)
    return list(whole["properties"].values()) if whole.get("properties") else [schema]


def type_of(document: Document, schema: Document) -> str:
    """Return the type of a value in words, with links to the sections of named schemas."""
    words = _choices(document, schema)
    if schema.get("nullable") and "null" not in words:
        words.append("null")
    return _listed(words) + _limits(document, schema)


def named_schemas(document: Document, schemas: Iterable[Document | None]) -> list[str]:
    """Return the named schemas that have a section where these are told of, with those that they refer to in turn, by name."""
    names: set[str] = set()
    waiting = [schema for schema in schemas if schema is not None]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in names:
                names.add(name)
                waiting.append(document["components"]["schemas"][name])
    return sorted(name for name in names if _has_section(document["components"]["schemas"][name]))


def anchor(name: str) -> str:
    """Return the anchor of a named schema's section."""
    return slug(name)


def _has_section(schema: Document) -> bool:
    """Tell whether a named schema has a section: others are told of in words where they are used."""
    return schema.get("type") in ("object", "array") or "anyOf" in schema or len(schema.get("enum", ())) > _FEW


def _choices(document: Document, schema: Document) -> list[str]:
    """Return what a value may be, each in words."""
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rsplit("/", 1)[-1]
            if _has_section(document["components"]["schemas"][name]):
                return [f"[{name}](#{anchor(name)})"]
            return _choices(document, resolved(document, schema))
        case {"allOf": [single]}:
            return _choices(document, single)
        case {"anyOf": several}:
            alternatives = [words for alternative in several for words in _choices(document, alternative)]
            return [words for words in alternatives if words != "null"] + ["null"] * ("null" in alternatives)
        case {"enum": several}:
            return ["null" if value is None else f"`{value}`" for value in several]
        case {"type": "array", "items": items}:
            return [f"list of {_listed(_choices(document, items))}"]
        case {"type": "object", "additionalProperties": dict(values)}:
            return [f"object, each value {_listed(_choices(document, values))}"]
        case {"type": "string", "format": "binary"}:
            return ["file"]
        case {"type": "string", "format": str(form)}:
            return [f"string ({form})"]
    return [str(schema.get("type", "anything"))]


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _limits(document: Document, schema: Document) -> str:
    """Return how long or large a value may be, with a comma before it."""
    schema = resolved(document, schema)
    for least, most, unit in (
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minimum", "maximum", ""),
    ):
        low, high = schema.get(least), schema.get(most)
        if high is not None and high < _NO_LIMIT:
            return f", {low} to {high}{unit}" if low is not None else f", up to {high}{unit}"
        if low is not None:
            return f", {low}{unit.removesuffix('s') if low == 1 else unit} or more"
    return ""


def _header_text(parameter: Parameter, index: str) -> str:
    """Return the first sentence on a header, with a link to all of them."""
    first = " ".join(parameter.description.split()).partition(". ")[0].removesuffix(".")
    return f"{first}. [More]({index}#{slug(parameter.name)})"


def _parameter_text(parameter: Parameter) -> str:
    sentences = [parameter.description]
    if "default" in parameter.schema:
        sentences.append(f"`{_shown(parameter.schema['default'])}` when absent.")
    if parameter.example is not None:
        sentences.append(f"For example `{_shown(parameter.example)}`.")
    return " ".join(sentences)


def _key_text(key: Document) -> str:
    sentences = [key.get("description", "").strip()]
    if "example" in key and key["example"] is not None:
        sentences.append(f"For example `{_shown(key['example'])}`.")
    return " ".join(part for part in sentences if part)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str) and reference.startswith("#/components/schemas/"):
            yield reference.rsplit("/", 1)[-1]
        for key, value in node.items():
            if key not in ("example", "examples"):
                yield from _references(value)

"""The pages of the reference as Markdown: one of all calls, one for each tag of the document, and ``llms.txt``.

Links are relative, so that the pages work under whatever path a proxy serves them; those of ``llms.txt`` are whole, for it is
read elsewhere.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from services.gateway.reference import samples, schemas
from services.gateway.reference.calls import JSON, Answer, Body, Call, Document, calls, slug
from services.gateway.reference.guides import Guide
from services.gateway.rights import OF_THE_ACCOUNT

INDEX = ""
"""The name of the page of all calls; the others are named after their tags."""
_INDEX_FROM_PAGES = "../reference.md"
_MODES = {"live": "not for test keys", "test": "for test keys only"}


def pages(document: Document, api: str) -> dict[str, str]:
    """Return the Markdown of each page by its name. ``api`` is the address of the API, with which samples begin."""
    every = list(calls(document))
    source_by_page = {INDEX: _index(document, every, api)}
    for tag in document["tags"]:
        source_by_page[slug(tag["name"])] = _page(
            document, tag, [call for call in every if call.tag == tag["name"]], api
        )
    return source_by_page


def llms(document: Document, base_url: str, guides: Collection[Guide] = ()) -> str:
    """Return ``llms.txt``: what there is to read for a program that reads, as https://llmstxt.org says."""
    info = document["info"]
    lead, _, rest = info["description"].strip().partition("\n\n")
    lines = [f"# {info['title']}", f"> {' '.join(lead.split())}", rest]
    tags = [
        f"- [{tag['name']}]({base_url}/reference/{slug(tag['name'])}.md): {tag['description']}"
        for tag in document["tags"]
    ]
    index = f"- [All calls]({base_url}/reference.md): every call with a link to its page."
    lines += ["## API", "\n".join([index, *tags])]
    if guides:
        guide_lines = [f"- [{guide.title}]({base_url}/guides/{guide.name}.md): {guide.summary}." for guide in guides]
        lines += ["## Guides", "\n".join(guide_lines)]
    lines += [
        "## Optional",
        f"- [OpenAPI 3.0]({base_url}/openapi.json): the same for programs that make clients of it.",
        f"- [OpenAPI 3.1]({base_url}/openapi-3.1.json): the same, with what webhooks are sent.",
    ]
    return "\n\n".join(lines) + "\n"


def title(document: Document) -> str:
    """Return the title of the page of all calls."""
    return f"{document['info']['title']} API"


def operations(document: Document) -> Mapping[str, list[Call]]:
    """Return the calls by the names of the pages that tell of them."""
    calls_by_page: dict[str, list[Call]] = {slug(tag["name"]): [] for tag in document["tags"]}
    for call in calls(document):
        calls_by_page[slug(call.tag)].append(call)
    return calls_by_page


def _index(document: Document, every: list[Call], api: str) -> str:
    blocks = [
        f"# {title(document)}",
        document["info"]["description"].strip(),
        f"The address of the API is `{api}`. The samples take the API key from the environment variable `{samples.KEY}`.",
        (
            "Other forms: [to try each call](docs), [OpenAPI 3.0](openapi.json) and [3.1](openapi-3.1.json), "
            "[llms.txt](llms.txt), and each of these pages as Markdown, under its address with `.md`. What the codes of errors "
            "mean: [errors](docs/errors)."
        ),
    ]
    for tag in document["tags"]:
        page = f"reference/{slug(tag['name'])}.md"
        blocks += [f"## {tag['name']}", f"{tag['description']} [Read more]({page})"]
        blocks.append(_overview([call for call in every if call.tag == tag["name"]], page))
    blocks += _headers(every)
    return "\n\n".join(blocks) + "\n"


def _headers(every: list[Call]) -> Iterator[str]:
    yield "## Headers"
    yield "Calls name those of these that they take."
    headers = {
        parameter.name: parameter for call in every for parameter in call.parameters if parameter.place == "header"
    }
    for name, header in headers.items():
        yield f"### {name}"
        yield header.description


def _page(document: Document, tag: Document, of_tag: list[Call], api: str) -> str:
    blocks = [f"# {tag['name']}", tag["description"].strip()]
    blocks.append(f"Part of [the reference of the {title(document)}]({_INDEX_FROM_PAGES}).")
    blocks.append(_overview(of_tag, ""))
    for call in of_tag:
        blocks += _operation(document, call, api)
    used = [schema for call in of_tag for schema in _schemas(document, call)]
    if names := schemas.named_schemas(document, used):
        blocks.append("## Schemas")
        blocks += [schemas.section(document, name) for name in names]
    return "\n\n".join(blocks) + "\n"


def _overview(listed_calls: list[Call], page: str) -> str:
    rows = ((f"`{call.method} {call.path}`", f"[{call.summary}]({page}#{slug(call.summary)})") for call in listed_calls)
    return schemas.table(("Call", "What it does"), rows)


def _operation(document: Document, call: Call, api: str) -> Iterator[str]:
    yield f"## {call.summary}"
    yield f"`{call.method} {call.path}`"
    if call.deprecated:
        yield _deprecated(call.deprecated)
    if call.description:
        yield call.description
    yield f"**Who may call it:** {_callers(call)} [Try it]({_try_it_link(call)})"
    if call.parameters:
        yield "### Parameters"
        yield schemas.parameters(document, call, _INDEX_FROM_PAGES)
    if call.bodies:
        yield "### Body"
        for body in call.bodies:
            yield _body(document, body)
    yield "### Samples"
    for language in samples.LANGUAGES:
        yield _fenced(language.fence, language.write(document, call, api))
    yield "### Answers"
    yield schemas.table(("Status", "When", "Content"), (_answer_row(document, answer) for answer in call.answers))
    for answer in call.answers:
        if answer.good and answer.example is not None:
            yield f"An example of `{answer.status}`:"
            yield _shown(answer)


def _answer_row(document: Document, answer: Answer) -> tuple[str, str, str]:
    status = "others" if answer.status == "default" else f"`{answer.status}`"
    return status, answer.description, _content(document, answer)


def _callers(call: Call) -> str:
    if not call.needs_key:
        return "anybody, without a key."
    conditions = [f"users with the role {_either(call.roles)}" if call.roles else "every user"]
    conditions.append("with any key" if call.scope == "any" else f"with a key of the scope `{call.scope}`")
    if call.mode:
        conditions.append(_MODES[call.mode])
    if not call.by_folder and call.scope not in OF_THE_ACCOUNT:  # which no key of folders has
        conditions.append("not for keys that are limited to folders")
    return ", ".join(conditions) + "."


def _deprecated(days: Document) -> str:
    ends = f", and gone from {days['sunset']} on" if "sunset" in days else ""
    return f"**Deprecated** since {days['since']}{ends}."


def _either(roles: tuple[str, ...]) -> str:
    words = [f"`{role}`" for role in roles]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _try_it_link(call: Call) -> str:
    """Return the address of the call in Swagger UI."""
    return f"../docs#/{call.tag.replace(' ', '%20')}/{call.id}"


def _body(document: Document, body: Body) -> str:
    need = "required" if body.required else "may be left out"
    if text := schemas.object_text(document, body.schema):
        return f"`{body.media_type}`, {need}.\n\n{text}"
    return f"`{body.media_type}`, {need}: {schemas.type_of(document, body.schema)}."


def _content(document: Document, answer: Answer) -> str:
    if answer.schema is None:
        return "nothing" if not answer.media_type else f"`{answer.media_type}`"
    words = schemas.type_of(document, answer.schema)
    return words if answer.media_type == JSON else f"{words} (`{answer.media_type}`)"


def _shown(answer: Answer) -> str:
    if answer.media_type == JSON:
        return _fenced("json", json.dumps(answer.example, ensure_ascii=False, indent=2))
    return _fenced("", str(answer.example).rstrip("\n"))


def _fenced(language: str, text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _schemas(document: Document, call: Call) -> Iterator[Any]:
    for parameter in call.parameters:
        yield parameter.schema
    for body in call.bodies:
        yield from schemas.below(document, body.schema)
    for answer in call.answers:
        yield answer.schema

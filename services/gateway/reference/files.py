"""All that the reference serves, by its address: made once, when the first reader comes."""

from pathlib import Path
from typing import NamedTuple

from services.gateway.http.openapi import specification
from services.gateway.reference import guides, layout, markdown
from services.gateway.reference.calls import Document, slug
from services.gateway.settings import Settings

_STYLE = Path(__file__).with_name("style.css")
_HTML = b"text/html; charset=utf-8"
_MARKDOWN = b"text/markdown; charset=utf-8"


class File(NamedTuple):
    """What is served at one address."""

    body: bytes
    media_type: bytes


def addresses() -> list[str]:
    """Return the paths at which the reference is served, before any of it is made."""
    names = [slug(tag["name"]) for tag in specification.tags()]
    pages = ["/reference", *(f"/reference/{name}" for name in names)]
    if guides.names():
        pages += ["/guides", *(f"/guides/{name}" for name in guides.names())]
    return [*pages, *(f"{page}.md" for page in pages), "/reference/style.css", "/llms.txt"]


def address_of(operation: specification.Operation) -> str:
    """Return the path, with the anchor, under which an operation is told of."""
    tag, summary = operation.definition["tags"][0], operation.definition["summary"]
    return f"/reference/{slug(tag)}#{slug(summary)}"


def files(settings: Settings) -> dict[str, File]:
    """Return what is served at each of the paths, for this installation's limits and address."""
    document = guides.linked(specification.published(settings), settings.base_url)
    file_by_path = {
        "/reference/style.css": File(_STYLE.read_bytes(), b"text/css; charset=utf-8"),
        "/llms.txt": File(
            markdown.llms(document, settings.base_url, guides.guides().values()).encode(), b"text/plain; charset=utf-8"
        ),
    }
    for name, source in markdown.pages(document, f"{settings.base_url}/api").items():
        address = f"/reference/{name}" if name else "/reference"
        file_by_path[f"{address}.md"] = File(source.encode(), _MARKDOWN)
        file_by_path[address] = File(_page(document, name, source).encode(), _HTML)
    if guides.names():
        file_by_path |= _guides(document)
    return file_by_path


def _guides(document: Document) -> dict[str, File]:
    """Return what is served below ``/guides``."""
    sources = {"": guides.index(), **{guide.name: guide.source for guide in guides.guides().values()}}
    file_by_path = {}
    for name, source in sources.items():
        address = f"/guides/{name}" if name else "/guides"
        entries = [layout.Entry("All guides", "../guides" if name else "guides", not name, [])]
        for guide in guides.guides().values():
            parts = layout.headings(source) if guide.name == name else []
            entries.append(
                layout.Entry(guide.title, guide.name if name else f"guides/{guide.name}", guide.name == name, parts)
            )
        page = layout.page(
            source,
            title=f"{guides.guides()[name].title if name else 'Guides'} - {markdown.title(document)}",
            root="../" if name else "",
            markdown=f"{name or 'guides'}.md",
            entries=entries,
            guide=True,
        )
        file_by_path[address] = File(page.encode(), _HTML)
        file_by_path[f"{address}.md"] = File(source.encode(), _MARKDOWN)
    return file_by_path


def _page(document: Document, name: str, source: str) -> str:
    index = name == markdown.INDEX
    calls = markdown.operations(document)
    entries = [layout.Entry("All calls", "reference" if index else "../reference", index, [])]
    for tag in document["tags"]:
        of_tag = slug(tag["name"])
        shown = [(call.summary, slug(call.summary)) for call in calls[of_tag]] if of_tag == name else []
        address = f"reference/{of_tag}" if index else of_tag
        entries.append(layout.Entry(tag["name"], address, of_tag == name, shown))
    heading = source.partition("\n")[0].removeprefix("# ")
    return layout.page(
        source,
        title=heading if index else f"{heading} - {markdown.title(document)}",
        root="" if index else "../",
        markdown="reference.md" if index else f"{name}.md",
        entries=entries,
    )

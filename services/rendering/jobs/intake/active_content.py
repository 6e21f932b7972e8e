"""Takes out of a PDF what acts instead of being read: scripts, actions, embedded and external files, media (threats T48).

The whole file is swept, object by object, instead of following the places where such things belong: a reader may follow
a path that we do not. Actions are kept by an allow list: links to the web and within the document.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pikepdf

from services.rendering.jobs.pdf.values import name_of, text_of

_HARMLESS_ACTIONS = {"/GoTo", "/URI", "/Named", "/Thread"}
_HARMFUL_ACTIONS = {
    "/JavaScript": "javascript",
    "/ECMAScript": "javascript",
    "/Rendition": "media",
    "/Movie": "media",
    "/Sound": "media",
    "/RichMediaExecute": "media",
    "/GoTo3DView": "media",
    "/Launch": "action",
    "/SubmitForm": "action",
    "/ImportData": "action",
    "/ResetForm": "action",
    "/GoToR": "action",
    "/GoToE": "action",
    "/GoToDp": "action",
    "/Hide": "action",
    "/SetOCGState": "action",
    "/Trans": "action",
}
_WEB_LINKS = ("http://", "https://", "mailto:", "tel:")
_TRIGGERS = {"/E", "/X", "/D", "/U", "/Fo", "/Bl", "/PO", "/PC", "/PV", "/PI", "/O", "/C"} | {
    *("/K", "/F", "/V", "/WC", "/WS", "/DS", "/WP", "/DP")
}
"""ISO 32000-2, tables 197 to 200."""

_MEDIA_ANNOTATIONS = {"/RichMedia", "/3D", "/Movie", "/Sound", "/Screen", "/FileAttachment", "/Projection"}
_MEDIA_KEYS = (
    "/RichMediaContent",
    "/RichMediaSettings",
    "/3DD",
    "/3DV",
    "/3DA",
    "/Movie",
    "/Sound",
    "/FS",
    "/MK",
    "/A",
)
_CATALOG_KEYS = {
    "/OpenAction": "action",
    "/AA": "action",
    "/Collection": "portfolio",
    "/AF": "embedded_file",
    "/SpiderInfo": "private_data",
    "/PieceInfo": "private_data",
    "/Requirements": "private_data",
    "/Threads": None,
    "/URI": None,
    "/Legal": None,
}
_KEPT_NAMES = {"/Dests"}
_DEEPEST_VALUE = 100


def remove_active_content(pdf: pikepdf.Pdf) -> Counter[str]:
    """Return how often each kind was taken out: ``javascript``, ``action``, ``media``, ``embedded_file``, ``external_file``,
    ``portfolio``, ``private_data``."""
    removed: Counter[str] = Counter()
    _clean_catalog(pdf, removed)
    for page in pdf.pages:
        _clean_annotations(page.obj, removed)
        for key in ("/PieceInfo", "/Thumb", "/B"):
            _drop(page.obj, key)
    for item in pdf.objects:
        _sweep(item, removed)
    return removed


def _clean_catalog(pdf: pikepdf.Pdf, removed: Counter[str]) -> None:
    root = pdf.Root
    for key, kind in _CATALOG_KEYS.items():
        value = root.get(key)
        if value is None:
            continue
        # A destination to open at is no action, but of no use either.
        if kind and (key != "/OpenAction" or isinstance(value, pikepdf.Dictionary)):
            removed[kind] += 1
        del root[key]
    names = root.get("/Names")
    if isinstance(names, pikepdf.Dictionary):
        for key in set(names.keys()) - _KEPT_NAMES:
            if key == "/JavaScript":
                removed["javascript"] += 1
            elif key == "/EmbeddedFiles":
                removed["embedded_file"] += 1
            del names[key]
    elif names is not None:
        del root["/Names"]
    layers = root.get("/OCProperties")
    if isinstance(layers, pikepdf.Dictionary):
        # What is seen must not depend on whether it is on a screen or on paper (threats T49).
        _drop(layers, "/Configs")
        shown = layers.get("/D")
        if isinstance(shown, pikepdf.Dictionary):
            _drop(shown, "/AS")


def _clean_annotations(page: pikepdf.Dictionary, removed: Counter[str]) -> None:
    """Media and attachments lose what they play or carry; a picture that stands for them stays as a stamp."""
    annotations = page.get("/Annots")
    if not isinstance(annotations, pikepdf.Array):
        return
    remaining = []
    for annotation in annotations:
        if not isinstance(annotation, pikepdf.Dictionary):
            continue
        subtype = name_of(annotation.get("/Subtype"))
        if subtype in _MEDIA_ANNOTATIONS:
            removed["embedded_file" if subtype == "/FileAttachment" else "media"] += 1
            for key in _MEDIA_KEYS:
                _drop(annotation, key)
            if subtype == "/FileAttachment" or not isinstance(annotation.get("/AP"), pikepdf.Dictionary):
                continue
            annotation["/Subtype"] = pikepdf.Name.Stamp
        remaining.append(annotation)
    page["/Annots"] = pikepdf.Array(remaining)


def _sweep(item: Any, removed: Counter[str]) -> None:
    """One indirect object with what is written inside it; other indirect objects have their own turn."""
    waiting = [(item, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > _DEEPEST_VALUE:
            continue
        if isinstance(value, pikepdf.Array):
            _clean_array("", value, removed)
            waiting += [(child, depth + 1) for child in _inside(value)]
        elif isinstance(value, pikepdf.Dictionary | pikepdf.Stream):
            _clean_dictionary(value, removed)
            waiting += [(child, depth + 1) for child in _inside(value.values())]


def _inside(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, pikepdf.Object) and not value.is_indirect:
            yield value


def _clean_array(key: str, value: pikepdf.Array, removed: Counter[str]) -> None:
    """``key`` of its holder: an array of actions is only where actions are. Elsewhere an element with /S is the range of page
    labels, an output intent or a structure element, and goes only when it is an action that does harm."""
    remaining = [child for child in value if not _is_dropped(key, child)]
    if len(remaining) < len(value):
        removed["action"] += len(value) - len(remaining)
        value[:] = remaining


def _clean_dictionary(value: Any, removed: Counter[str]) -> None:
    for key, child in list(value.items()):
        if key == "/Next" and isinstance(child, pikepdf.Array):
            _clean_array(key, child, removed)
        kind = _is_dropped(key, child)
        if kind and key.isprintable():
            del value[key]
            removed[kind] += 1
        elif kind:  # Its name is no text: pikepdf lists it, but takes it from nobody.
            _empty(child)
            removed[kind] += 1
    if isinstance(value, pikepdf.Stream):
        _make_local(value, removed)


def _make_local(stream: pikepdf.Stream, removed: Counter[str]) -> None:
    """Streams whose data is in another file (7.3.8.2), and pictures that are replaced by another one when printed."""
    if "/F" in stream:
        removed["external_file"] += 1
        for key in ("/F", "/FFilter", "/FDecodeParms"):
            _drop(stream, key)
    for key in ("/OPI", "/Ref", "/Alternates"):
        if key in stream:
            removed["external_file"] += 1
            del stream[key]


def _is_dropped(key: str, value: Any) -> str | None:
    """The kind of active content that a dictionary's entry is, None when it stays."""
    if key == "/JS" and isinstance(value, pikepdf.String | pikepdf.Stream) and not _is_drawing(value):
        return "javascript"
    if not isinstance(value, pikepdf.Dictionary):
        return "embedded_file" if key == "/AF" and isinstance(value, pikepdf.Array) else None
    if key == "/AA" and _is_trigger_table(value):
        return "action"
    if key == "/EF" and all(entry in ("/F", "/UF", "/DOS", "/Mac", "/Unix") for entry in value):
        return "embedded_file"
    if key == "/AF" and "/EF" in value:
        return "embedded_file"
    return _action_kind(key, value)


def _action_kind(key: str, value: pikepdf.Dictionary) -> str | None:
    action = value.get("/S")
    if not isinstance(action, pikepdf.Name) or value.get("/Type") == "/StructElem":
        return None
    kind = name_of(action)
    if kind in _HARMFUL_ACTIONS and "/K" not in value:
        return _HARMFUL_ACTIONS[kind]
    if key not in ("/A", "/PA", "/Next", "/OpenAction"):
        return None
    if kind == "/URI":
        return None if _is_web_link(value.get("/URI")) else "action"
    return None if kind in _HARMLESS_ACTIONS or "/K" in value else "action"


def _is_web_link(address: Any) -> bool:
    """Also an address without a scheme; other schemes run programs."""
    if not isinstance(address, pikepdf.String):
        return False
    url = "".join(text_of(address).split()).lower()
    return url.startswith(_WEB_LINKS) or ":" not in url.partition("/")[0]


def _is_trigger_table(value: pikepdf.Dictionary) -> bool:
    """/AA is also what a producer may call a font or a graphics state in a resource dictionary."""
    return all(key in _TRIGGERS and isinstance(child, pikepdf.Dictionary) for key, child in value.items())


def _is_drawing(value: Any) -> bool:
    return isinstance(value, pikepdf.Stream) and any(
        key in value for key in ("/Subtype", "/PatternType", "/ShadingType")
    )


def _empty(value: Any) -> None:
    for key in ("/S", "/JS", "/F", "/URI", "/D", "/Next", "/EF", "/UF", "/R", "/OP"):
        _drop(value, key)


def _drop(holder: Any, key: str) -> None:
    if key in holder:
        del holder[key]

"""What an HTML document may load: nothing but ``data:`` URLs and the files that the caller fetched for it.

WeasyPrint's own fetcher reads ``file:`` URLs and follows redirects into the private network (threats T35). This one opens
no connection and no file. The caller asks ``external_urls`` what a document needs, fetches what it may through its
guarded way out, and hands it in as ``assets``.
"""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urljoin, urlsplit

import tinyhtml5
from weasyprint.urls import URLFetcher, URLFetcherResponse

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pictures.preparing import check_picture_size

MOST_URLS = 100
_CSS_URL = re.compile(
    r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)"'\s]*))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE
)
_LOADING = {
    "img": "src",
    "input": "src",
    "embed": "src",
    "object": "data",
    "image": "href",
    "feimage": "href",
    "use": "href",
}
_PICTURE_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")


def external_urls(html: str, assets: Mapping[str, bytes] | None = None) -> list[str]:
    """The http and https URLs that the document would load, in order, without those in ``assets``. Style sheets among the
    assets are looked into: ask again after fetching until nothing is left. At most 100, then Refused."""
    assets = assets or {}
    root = tinyhtml5.parse(html, namespace_html_elements=False)
    base = next((element.get("href", "") for element in root.iter("base")), "")
    urls: dict[str, None] = {}
    waiting = [_joined(base, url.strip()) for url in _urls_of(root)]
    seen = set()
    while waiting:
        url = waiting.pop(0)
        if url.startswith("//"):
            url = f"https:{url}"
        if url in seen or urlsplit_scheme(url) not in ("http", "https"):
            continue
        seen.add(url)
        if url in assets:
            waiting += [_joined(url, other) for other in _css_urls(assets[url][:2_000_000].decode("utf-8", "ignore"))]
        else:
            urls[url] = None
    if len(urls) > MOST_URLS:
        raise Refused(f"The HTML loads more than {MOST_URLS} files.")
    return list(urls)


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:
        return ""


def urlsplit_scheme(url: str) -> str:
    """Lower case; empty when there is none or the URL makes no sense."""
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


class ClosedFetcher(URLFetcher):  # type: ignore[misc]
    """``missing`` collects what the document asked for and did not get."""

    def __init__(self, assets: Mapping[str, bytes]) -> None:
        super().__init__(timeout=1, allowed_protocols=("data",), allow_redirects=False)
        self._assets = assets
        self.missing: dict[str, None] = {}

    def fetch(self, url: str, headers: object = None) -> URLFetcherResponse:
        try:
            if url in self._assets:
                return self._checked(URLFetcherResponse(url, self._assets[url]))
            if urlsplit_scheme(url) == "data":
                return self._checked(super().fetch(url))
        except Refused as reason:
            self.missing[url] = None
            raise ValueError(str(reason)) from reason
        self.missing[url] = None
        raise ValueError("only data: URLs and files that were fetched beforehand are loaded")

    def _checked(self, response: URLFetcherResponse) -> URLFetcherResponse:
        """A picture of a few bytes may have billions of pixels."""
        body = response.read()
        if body.startswith(_PICTURE_STARTS) or body[8:12] == b"WEBP":
            check_picture_size(body)
        return URLFetcherResponse(response.url, body, response.headers, response.status)


def _urls_of(root: object) -> Iterator[str]:
    for element in root.iter():  # type: ignore[attr-defined]
        if not isinstance(element.tag, str):
            continue
        tag = element.tag.rpartition("}")[2].lower()
        attribute = _LOADING.get(tag)
        for name, value in element.attrib.items():
            if str(name).rpartition("}")[2] == attribute:
                yield value
        if tag == "link" and "stylesheet" in element.get("rel", "").lower().split():
            yield element.get("href", "")
        if tag == "style":
            yield from _css_urls("".join(element.itertext()))
        if "style" in element.attrib:
            yield from _css_urls(element.attrib["style"])


def _css_urls(css: str) -> Iterator[str]:
    for match in _CSS_URL.finditer(css):
        yield next((group for group in match.groups() if group), "")

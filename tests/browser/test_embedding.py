"""The signing page in frames of other sites: the examples of docs/embedding.md, the peer's components, and sites that mean ill.

The suite is at ``localhost``, the sites at other names of the loopback: for a browser these are different sites.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.browser.conftest import DESKTOP, Chromium, Engines, eventually
from tests.browser.engines import Firefox
from tests.browser.forms import field, invite, one_signer, template
from tests.support.clients.published import MODULES
from tests.support.servers.mail_server import self_signed
from tests.support.servers.other_site import other_site, over_tls
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser

EXAMPLES = re.findall(
    r"```html\n(.*?)```", (Path(__file__).parents[2] / "docs" / "embedding.md").read_text(), re.DOTALL
)
REFUSED = "chrome-error://chromewebdata/"
"""The address of what Chromium shows instead of a page that it may not frame."""
ACCOUNT = {"frame_ancestors": None, "accent_color": None}


@pytest.fixture
def account(suite: RunningSuite) -> Iterator[None]:
    yield
    suite.api("PUT", "/account", ACCOUNT)


@pytest.fixture
def sites() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def allow(suite: RunningSuite, *origins: str) -> None:
    suite.api("PUT", "/account", {"frame_ancestors": list(origins)})


def example(number: int, suite: RunningSuite, path: str) -> str:
    text: str = EXAMPLES[number]
    return text.replace("https://sign.example.com/s/SLUG", suite.base_url + path).replace(
        "https://sign.example.com", suite.base_url
    )


def opened(chromium: Chromium, url: str, **options: Any) -> Page:
    context = chromium.new_context(viewport=DESKTOP, locale="en-GB", **options)
    page = context.new_page()
    page.goto(url)
    return page


def fill_in(frame: FrameLocator, *labels: str) -> None:
    """What a signer does in the frame."""
    frame.get_by_role("button", name="Start", exact=True).click()
    for label in labels:
        frame.get_by_label(label, exact=True).fill(f"my {label}")
        if label != labels[-1]:
            frame.get_by_role("button", name="Next", exact=True).click()
    frame.get_by_role("button", name="Complete", exact=True).click()


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_hear_what_happens(
    suite: RunningSuite, chromium: Chromium, sites: ExitStack, account: None, number: int
) -> None:
    page_of = {
        "/": example(
            number, suite, one_signer(suite, field("Name"), completed_redirect_url="https://shop.example/done")
        )
    }
    site = sites.enter_context(other_site("127.0.0.1", page_of))
    allow(suite, site)
    page = opened(chromium, site)
    log = page.locator("#log")
    frame = page.frame_locator("iframe")
    expect(log).to_contain_text("loaded 0@example.com")
    fill_in(frame, "Name")
    expect(log).to_contain_text("completed 0@example.com")
    said = [
        word for word in re.findall(r"[a-z]+(?= )", log.inner_text().replace("0@example.com", "")) if word != "resized"
    ]
    assert said[:4] == ["ready", "loaded", "started", "completed"]
    link = frame.get_by_role("link", name=re.compile("shop.example"))
    expect(link).to_have_attribute("target", "_top")  # the frame itself goes nowhere
    assert page.url == f"{site}/"
    page.context.close()


def test_declining_is_told(suite: RunningSuite, chromium: Chromium, sites: ExitStack, account: None) -> None:
    site = sites.enter_context(other_site("127.0.0.1", {"/": example(0, suite, one_signer(suite, field("Name")))}))
    allow(suite, site)
    page = opened(chromium, site)
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="Decline", exact=True).click()
    frame.get_by_role("dialog").get_by_role("button", name="Decline", exact=True).click()
    expect(page.locator("#log")).to_contain_text("declined 0@example.com")
    page.context.close()


def test_after_completing_the_page_around_goes_where_the_sender_wants(
    suite: RunningSuite, chromium: Chromium, sites: ExitStack, account: None
) -> None:
    pages = {"/done": "<title>Bought</title>", "/": ""}
    site = sites.enter_context(other_site("127.0.0.1", pages))
    path = one_signer(suite, field("Name"), completed_redirect_url=f"{site}/done")
    pages["/"] = (
        f'<script src="{suite.base_url}/embed.js"></script><countersign-form src="{suite.base_url}{path}"></countersign-form>'
    )
    allow(suite, site)
    page = opened(chromium, site)
    fill_in(page.frame_locator("iframe"), "Name")
    page.wait_for_url(f"{site}/done")
    page.context.close()


def test_a_shared_link_begins_at_once_for_whoever_is_known(
    suite: RunningSuite, chromium: Chromium, sites: ExitStack, account: None
) -> None:
    made = template(suite, field("Name"))
    link = suite.api("PUT", f"/templates/{made}", {"shared_link": True})["slug"]
    page_of = f'<script src="{suite.base_url}/embed.js"></script><countersign-form email="v@example.com" src="{suite.base_url}/d/{link}"></countersign-form>'
    site = sites.enter_context(other_site("127.0.0.1", {"/": page_of}))
    allow(suite, site)
    page = opened(chromium, site)
    expect(page.frame_locator("iframe").get_by_role("button", name="Start", exact=True)).to_be_visible()
    page.context.close()


def test_the_examples_work_in_firefox(suite: RunningSuite, sites: ExitStack, account: None, engines: Engines) -> None:
    for number in range(len(EXAMPLES)):
        site = sites.enter_context(
            other_site("127.0.0.1", {"/": example(number, suite, one_signer(suite, field("Name")))})
        )
        allow(suite, site)
        browser = engines("firefox")
        browser.open(site)
        browser.sees("loaded 0@example.com")
        in_frame(browser, True)
        browser.press("Start")
        browser.fill("Name", "Ann Ray")
        browser.press("Complete")
        browser.sees("You have signed")
        in_frame(browser, False)
        browser.sees("completed 0@example.com")


def in_frame(browser: Any, inside: bool) -> None:
    assert isinstance(browser, Firefox)
    if inside:
        browser.wait("return document.querySelector('iframe') !== null;", what="the frame")
        browser._call("WebDriver:SwitchToFrame", id=0)
    else:
        browser._call("WebDriver:SwitchToParentFrame")


def is_refused(page: Page) -> None:
    eventually(page, lambda: [each.url for each in page.frames[1:]] == [REFUSED], "the frame that is refused")
    assert page.locator("#log").inner_text() == ""


def test_nobody_frames_the_pages_of_an_account_that_allows_nobody_or_others(
    suite: RunningSuite, chromium: Chromium, sites: ExitStack, account: None
) -> None:
    """Chromium shows nothing of a page that it may not frame, and the element hears nothing."""
    path = one_signer(suite, field("Name"))
    site = sites.enter_context(other_site("127.0.0.1", {"/": example(0, suite, path)}))
    for allowed in ([], ["https://app.example"], ["http://127.0.0.1:1"], ["'self'"]):
        allow(suite, *allowed)
        page = opened(chromium, site)
        is_refused(page)
        page.context.close()


EVIL = """<script>
  globalThis.heard = [];
  addEventListener("message", ({ data }) => heard.push(data));
  const shout = () => {
    const hello = { countersign: 1, type: "hello", wishes: { prefill: { email: "evil@example.com" } } };
    const lie = { countersign: 1, type: "completed", detail: { redirect_url: "https://evil.example/" } };
    for (let number = 0; number < parent.frames.length; number += 1) parent.frames[number].postMessage(hello, "*");
    parent.postMessage(lie, "*");
  };
  shout();
  setInterval(shout, 20);
</script>"""


def test_messages_of_another_frame_are_heard_by_nobody(
    suite: RunningSuite, chromium: Chromium, sites: ExitStack, account: None
) -> None:
    """A hostile frame beside the form tells the form that it is the embedder, and the embedder that it is the form."""
    evil = sites.enter_context(other_site("evil.localhost", {"/": EVIL}))
    around = f'<iframe id="evil" src="{evil}"></iframe>'
    page_of = around + example(0, suite, one_signer(suite, field("Name"))).replace('redirect="none"', "")
    site = sites.enter_context(other_site("127.0.0.1", {"/": page_of}))
    allow(suite, site)
    page = opened(chromium, site)
    expect(page.locator("#log")).to_contain_text("loaded 0@example.com")
    page.frame_locator("countersign-form iframe").get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("#log")).to_contain_text("started 0@example.com")
    assert "completed" not in page.locator("#log").inner_text()
    assert page.url == f"{site}/"
    hostile = next(frame for frame in page.frames if frame.url.startswith(evil))
    # It is in the page's list of frames itself, and hears its own shouts.
    assert hostile.evaluate("heard.filter(({ type }) => type !== 'hello')") == []
    page.context.close()


def test_whose_messages_the_page_listens_to(suite: RunningSuite, chromium: Chromium) -> None:
    page = opened(chromium, suite.base_url + "/verify")
    sources = ["https://app.example.com", "https://*.example.org", "http://localhost:3000"]
    judged = page.evaluate(
        """async ({ sources, origins }) => {
          const { isAllowed } = await import("/static/0/form/embedding.js");
          return origins.map((origin) => isAllowed(origin, sources, "https://own.example"));
        }""",
        {
            "sources": sources,
            "origins": (
                origins := {
                    "https://app.example.com": True,
                    "https://a.example.org": True,
                    "https://a.b.example.org": True,
                    "http://localhost:3000": True,
                    "https://example.org": False,
                    "https://evilexample.org": False,
                    "http://a.example.org": False,
                    "https://a.example.org:8443": False,
                    "https://app.example.com.evil.com": False,
                    "http://app.example.com": False,
                    "http://localhost:3001": False,
                    "https://own.example": False,
                    "null": False,
                }
            )
            and list(origins),
        },
    )
    assert dict(zip(origins, judged, strict=True)) == origins
    page.context.close()


REACT = """<!doctype html><div id="root"></div><pre id="log"></pre>
<script src="/react.js"></script><script src="/react-dom.js"></script>
<script type="importmap">{"imports": {"react": "/react-module.js"}}</script>
<script type="module">
  import { DocusealForm } from "/docuseal.js";
  const say = (name) => (detail) => (document.getElementById("log").textContent += `${name} ${JSON.stringify(detail ?? null)}\\n`);
  const properties = { host: "%(host)s", src: "https://%(host)s%(path)s", email: "0@example.com", completedRedirectUrl: "",
    onInit: say("init"), onLoad: say("load"), onComplete: say("completed"), onDecline: say("declined") };
  ReactDOM.createRoot(document.getElementById("root")).render(React.createElement(DocusealForm, properties));
</script>"""
VUE = """<!doctype html><div id="root"></div><pre id="log"></pre>
<script type="importmap">{"imports": {"vue": "/vue.js"}}</script>
<script type="module">
  import { createApp, h } from "vue";
  import { DocusealForm } from "/docuseal.js";
  const say = (name) => (detail) => (document.getElementById("log").textContent += `${name} ${JSON.stringify(detail ?? null)}\\n`);
  const properties = { host: "%(host)s", src: "https://%(host)s%(path)s", email: "0@example.com",
    onInit: say("init"), onLoad: say("load"), onComplete: say("completed"), onDecline: say("declined") };
  createApp({ render: () => h(DocusealForm, properties) }).mount("#root");
</script>"""
PACKAGES = {
    "react": (
        REACT,
        {
            "/react.js": "react/umd/react.production.min.js",
            "/react-dom.js": "react-dom/umd/react-dom.production.min.js",
            "/docuseal.js": "@docuseal/react/dist/index.esm.js",
        },
    ),
    "vue": (VUE, {"/vue.js": "vue/dist/vue.esm-browser.prod.js", "/docuseal.js": "@docuseal/vue/dist/index.esm.js"}),
}


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_the_peers_components_run_unmodified(
    suite: RunningSuite, chromium: Chromium, sites: ExitStack, account: None, tmp_path: Path, package: str
) -> None:
    """As they are installed from npm. They ask for their script by https, so a proxy that ends TLS stands before the suite."""
    self_signed(tmp_path)
    secure = sites.enter_context(
        over_tls(suite.base_url, str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem"), "localhost")
    )
    text, files = PACKAGES[package]
    path = one_signer(suite, field("Name"))
    pages = {address: (MODULES / file).read_text() for address, file in files.items()}
    pages["/react-module.js"] = "export default globalThis.React;"
    pages["/"] = text % {"host": secure.removeprefix("https://"), "path": path}
    site = sites.enter_context(other_site("127.0.0.1", pages))
    allow(suite, site)
    page = opened(chromium, site, ignore_https_errors=True)
    log = page.locator("#log")
    expect(log).to_contain_text(re.compile(r"^init null\s+load \{"))
    fill_in(page.frame_locator("docuseal-form iframe"), "Name")
    expect(log).to_contain_text("completed {")
    (told,) = [line for line in log.inner_text().splitlines() if line.startswith("completed ")]
    for part in (
        '"email":"0@example.com"',
        '"role":"Signer"',
        '"status":"completed"',
        '"values":[{"field":"Name","value":"my Name"}]',
    ):
        assert part in told
    assert told.count('"submission_id":') == 1
    page.context.close()


def test_the_colour_of_the_account_is_that_of_the_button(
    suite: RunningSuite, chromium: Chromium, account: None
) -> None:
    (submitter,) = invite(suite, template(suite, field("Name")))
    suite.api("PUT", "/account", {"accent_color": "#7A1FA2"})
    page = opened(chromium, f"{suite.base_url}/s/{submitter['slug']}")
    start = page.get_by_role("button", name="Start", exact=True)
    expect(start).to_have_css("background-color", "rgb(122, 31, 162)")
    refused = suite.api("PUT", "/account", {"accent_color": "#ffcc00"}, status=422)
    assert refused["details"][0]["field"] == "accent_color"
    page.context.close()


def test_the_page_around_dresses_the_form_in_what_can_be_read(
    suite: RunningSuite, chromium: Chromium, sites: ExitStack, account: None
) -> None:
    pages = {"/": ""}
    site = sites.enter_context(other_site("127.0.0.1", pages))
    allow(suite, site)
    src = f'src="{suite.base_url}{one_signer(suite, field("Name"))}"'
    listening = (
        '<p id="told"></p><script>addEventListener("refused", ({ detail }) => { document.getElementById("told").textContent ='
        ' detail.problems.map(({ name, reason }) => `${name} ${reason}`).join("; "); });</script>'
    )

    def shown(attributes: str, style: str = "", **options: Any) -> tuple[Page, dict[str, str]]:
        pages["/"] = (
            f"<!doctype html><style>countersign-form {{ {style} }}</style>{listening}"
            f'<script src="{suite.base_url}/embed.js"></script><countersign-form {src} {attributes}></countersign-form>'
        )
        page = opened(chromium, site, **options)
        button = page.frame_locator("iframe").get_by_role("button", name="Start", exact=True)
        expect(button).to_be_visible()
        return page, {
            name: value
            for name in ("background-color", "color", "border-radius", "font-family")
            if (value := button.evaluate(f"(one) => getComputedStyle(one).getPropertyValue('{name}')")) is not None
        }

    dressed = 'accent-color="#7a1fa2" corner-radius="4px"'
    page, _ = shown(dressed, "--countersign-accent-color: #b3261e; --countersign-font-family: 'Liberation Serif'")
    button = page.frame_locator("iframe").get_by_role("button", name="Start", exact=True)
    for name, value in (
        ("background-color", "rgb(122, 31, 162)"),  # the attribute goes first
        ("border-radius", "4px"),
        ("font-family", re.compile("^['\"]Liberation Serif")),
    ):
        expect(button).to_have_css(name, value)
    expect(page.locator("#told")).to_be_empty()
    page.context.close()

    bad = (
        ("accent-color", "#ffcc00", "contrast of 4.5 to 1 against #ffffff (WCAG 2.2, 1.4.3); it has 1.51"),
        ("background-color", "#444444", "contrast of 4.5 to 1 against #1b2430"),
        ("text-color", "red;} * {", "must be a colour such as #175c4c"),
        ("corner-radius", "99px", "must be from 0px to 32px"),
        ("font-family", "url(https://evil.example/x)", "must be names of fonts"),
    )
    page, plain = shown(" ".join(f'{name}="{value}"' for name, value, _ in bad))
    for name, _, words in bad:
        expect(page.locator("#told")).to_contain_text(f"{name} ")
        expect(page.locator("#told")).to_contain_text(words)
    assert plain["background-color"] == "rgb(23, 92, 76)"
    page.context.close()

    suite.api("PUT", "/account", {"accent_color": "#7A1FA2"})
    page, dark = shown(dressed, color_scheme="dark")
    assert (dark["background-color"], dark["color"]) == ("rgb(127, 209, 187)", "rgb(11, 31, 25)")
    page.context.close()

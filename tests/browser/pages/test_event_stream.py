"""The feed in a browser's own EventSource: it goes on by itself where it was cut off, and misses nothing."""

from urllib.parse import urlsplit

from tests.browser.conftest import Chromium, eventually
from tests.e2e.notifications.test_feed import everything
from tests.support.material.agreement import agreement_pdf, send
from tests.support.servers.tcp_proxy import TcpProxy
from tests.support.services.suite import RunningSuite

LISTEN = """after => {
    globalThis.told = []
    globalThis.opened = 0
    globalThis.source = new EventSource(`/api/events?after=${after}&kinds=submission.created`)
    source.onopen = () => { opened += 1 }
    source.onmessage = (event) => {
        const row = JSON.parse(event.data)
        told.push([event.lastEventId, String(row.sequence), row.data.id])
    }
}"""


def test_an_event_source_goes_on_where_it_was_cut_off(suite: RunningSuite, chromium: Chromium) -> None:
    template = suite.template(agreement_pdf())["id"]
    _, begun = everything(suite)

    def made() -> int:
        return int(send(suite, template, send_email=False)[0]["submission_id"])

    proxy = TcpProxy(int(urlsplit(suite.base_url).port or 80))
    context = chromium.new_context(bypass_csp=True, extra_http_headers={"X-Auth-Token": suite.api_key})
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{proxy.port}/docs")
        first = made()
        page.evaluate(LISTEN, begun)

        def told() -> list[int]:
            return [about for _, _, about in page.evaluate("told")]

        eventually(page, lambda: first in told(), "the first")
        proxy.cut()
        second = made()
        eventually(page, lambda: second in told(), "the second")
        rows = page.evaluate("told")
        assert page.evaluate("opened") >= 2
        assert all(last == sequence for last, sequence, _ in rows)
        sequences = [int(sequence) for _, sequence, _ in rows]
        assert sequences == sorted(set(sequences))
        ours = [each["data"]["id"] for each in everything(suite, begun, kinds="submission.created")[0]]
        assert told() == ours[: len(rows)]
    finally:
        chromium.close(context)
        proxy.close()

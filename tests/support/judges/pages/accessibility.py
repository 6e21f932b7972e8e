"""Judges of what a page is for people who see little, hear it, or have no mouse: axe, by Deque, and what can be measured of its
look: words that are cut, that lie at the very edge of the window, or that nothing but the window's edge breaks."""

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
"""``deploy/local.py`` installs it from ``tests/support/judges/pages/axe``."""

WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
ALL = (*WCAG, "best-practice")

_RUN = """async ([rules, tags]) => {
    if (!window.axe) return null;
    const runOnly = rules ? { type: "rule", values: rules } : { type: "tag", values: tags };
    const more = { "label-content-name-mismatch": { enabled: true }, "target-size": { enabled: true } };
    const found = await axe.run(document, { runOnly, rules: rules ? {} : more, resultTypes: ["violations"], elementRef: false,
        preload: false, iframes: false });  // no rule of ours asks for style sheets, no page of ours has frames
    return found.violations.map(({ id, nodes }) => `${id}: ` + nodes.map(({ html, any }) =>
        html.slice(0, 160) + " " + any.map(({ message }) => message).join("; ").slice(0, 200)).join(" | "));
}"""

_LOOK = r"""() => {
    const faults = new Set();
    const say = (what, node, more = "") => faults.add(`${what}: ${(node.className || node.id || node.localName)} ${JSON.stringify(
        node.textContent.trim().replace(/\s+/g, " ").slice(0, 70))} ${more}`.trim());
    const root = document.documentElement, wide = root.clientWidth;
    if (root.scrollWidth > wide) say("wider than the window", root, `${root.scrollWidth} > ${wide}`);
    const skipped = ".visually-hidden, .sheet, .mails__html, script, noscript, [inert], option, .visually-hidden *, .sheet *";
    const open = document.querySelector("dialog[open]");
    const scrolls = (style) => ["auto", "scroll"].includes(style.overflowX);
    const walker = document.createTreeWalker(open ?? document.body, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        const node = text.parentElement;
        if (!text.data.trim() || node.matches(skipped) || !node.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
        const range = document.createRange();
        range.selectNodeContents(text);
        const box = range.getBoundingClientRect();
        if (!box.width || !box.height) continue;
        let mayScroll = false, hidden = false;
        for (let each = node; each && each !== document.body; each = each.parentElement) {
            const style = getComputedStyle(each);
            if (style.position === "absolute" && each.clientWidth <= 1) hidden = true;
            if (scrolls(style) && each.scrollWidth > each.clientWidth) mayScroll = true;
            const cuts = ["hidden", "clip"].includes(style.overflowX) || ["hidden", "clip"].includes(style.overflowY);
            const edge = each.getBoundingClientRect();
            const leading = parseFloat(style.fontSize) / 4; // a line's box may be lower than its letters' font is high
            if (cuts && !mayScroll && (box.left < edge.left - 1 || box.right > edge.right + 1
                || box.top < edge.top - leading || box.bottom > edge.bottom + leading)) say("cut", node, each === node ? "" : `by ${each.className}`);
            if (each.matches("button, .button") && !cuts && (box.left < edge.left - 1 || box.right > edge.right + 1
                || box.top < edge.top - 1 || box.bottom > edge.bottom + 1)) say("out of its button", node);
        }
        if (hidden) continue;
        if (!mayScroll && (box.left < 4 || box.right > wide - 4)) say("at the edge", node, `${box.left} to ${box.right} of ${wide}`);
        for (const { 0: word, index } of text.data.matchAll(/[\p{L}\p{M}]+/gu)) {
            if (word.length < 3 || /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u.test(word)) continue;
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            const lines = new Set([...range.getClientRects()].filter(({ width }) => width > 0.5).map(({ bottom }) => Math.round(bottom / 6)));
            if (lines.size > 1 && getComputedStyle(node).wordBreak !== "break-all") say("broken word", node, word);
        }
    }
    for (const select of document.querySelectorAll("select")) {
        if (!select.checkVisibility() || select.size > 1) continue;
        const style = getComputedStyle(select), canvas = document.createElement("canvas").getContext("2d");
        canvas.font = style.font;
        const room = select.clientWidth - parseFloat(style.paddingInlineStart) - parseFloat(style.paddingInlineEnd);
        const needed = canvas.measureText(select.selectedOptions[0]?.textContent.trim() ?? "").width;
        if (needed > room) say("cut", select, `${Math.round(needed)} > ${Math.round(room)}`);
    }
    return [...faults];
}"""


def axe(page: Page, *rules: str, tags: tuple[str, ...] = ALL) -> list[str]:
    """Return what axe has against the page as it is now, by the rules with these tags, or by ``rules`` alone."""
    asked = [list(rules) or None, list(tags)]
    found: list[str] | None = page.evaluate(_RUN, asked)
    if found is None:  # a page that it has not looked at yet
        page.evaluate(_AXE.read_text())
        found = page.evaluate(_RUN, asked)
    assert found is not None
    return found


def looks(page: Page) -> list[str]:
    """Return the words of ours that are cut, broken, or at the edge of the window."""
    found: list[Any] = page.evaluate(_LOOK)
    return [str(each) for each in found]


SPACED = "* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important } p { margin-block-end: 2em !important }"
"""The room that a reader may ask for (WCAG 1.4.12)."""

_LOOK_AND_SPACED = """(room) => {
    const look = LOOK, plain = look(), own = new CSSStyleSheet();
    own.replaceSync(room);
    document.adoptedStyleSheets = [own];
    const spaced = look();
    document.adoptedStyleSheets = [];
    return [plain, spaced];
}""".replace("LOOK", _LOOK, 1)


def looks_with_room(page: Page) -> tuple[list[str], list[str]]:
    """Return what ``looks`` has against the page as it is, and against the page with the room that a reader may ask for."""
    plain, spaced = page.evaluate(_LOOK_AND_SPACED, SPACED)
    return plain, spaced


_LOOK_AT_EACH = """async (documents) => {
    const look = LOOK, found = [];
    for (const html of documents) {
        document.open();
        document.write(html);
        document.close();
        await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));
        found.push(look());
    }
    return found;
}""".replace("LOOK", _LOOK, 1)


def looks_of(page: Page, documents: list[str]) -> list[list[str]]:
    """Return what ``looks`` has against each of these documents, written into the page one after the other: they are laid out,
    which is all it needs, and not drawn."""
    found: list[list[str]] = page.evaluate(_LOOK_AT_EACH, documents)
    return found

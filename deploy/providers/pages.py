"""The pages of a local provider, in HTML: what a person is asked to approve, and what there is to see."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

_STYLE = """
:root { --paper: #f5f3ee; --sheet: #fff; --ink: #1b2430; --soft: #4d5866; --line: #d8d3c8; --accent: #175c4c;
  --danger: #a32218; --focus: #0b57d0; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font: 1.125rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif; }
main { max-width: 42rem; margin: 0 auto; padding: 2rem 1rem; }
section, form { background: var(--sheet); border-radius: 1.25rem; padding: 1.75rem; margin: 1rem 0;
  box-shadow: 0 1px 2px rgb(27 36 48 / 8%), 0 6px 24px rgb(27 36 48 / 10%); }
h1 { font-size: clamp(1.5rem, 1.2rem + 1.5vw, 2rem); line-height: 1.2; margin: 0 0 .5rem; text-wrap: balance; }
h2 { font-size: 1.375rem; margin: 0 0 .5rem; }
p { margin: .5rem 0; }
.soft { color: var(--soft); font-size: 1rem; }
ul { list-style: none; padding: 0; margin: 1rem 0; }
li { border-top: 1px solid var(--line); padding: .75rem 0; overflow-wrap: anywhere; }
code { font: 1rem ui-monospace, "SF Mono", Menlo, "Liberation Mono", monospace; }
.buttons { display: flex; gap: 1rem; flex-wrap: wrap; margin-top: 1.75rem; }
button { font: inherit; font-weight: 600; min-height: 3.25rem; padding: 0 1.75rem; border-radius: .75rem; cursor: pointer;
  border: 2px solid var(--accent); background: var(--accent); color: #fff; flex: 1 1 10rem; }
button.refuse { background: var(--sheet); color: var(--danger); border-color: var(--danger); }
button:focus-visible, a:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: 1rem; }
td, th { text-align: start; border-top: 1px solid var(--line); padding: .5rem .5rem .5rem 0; overflow-wrap: anywhere;
  vertical-align: top; }
"""
_ONLY_TRIAL = "This provider runs on your own machine, to be tried. What it signs is worth nothing."


def page(title: str, body: str) -> bytes:
    """A whole page; ``body`` is HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>{body}</main></body></html>"
    ).encode()


def approval(
    number: str, client: str, credential: str | None, documents: Iterable[tuple[str, str]], owner: str
) -> bytes:
    """``documents``: label and hash of each; without ``credential`` only a login is asked for."""
    if credential is None:
        request = f"<p><strong>{escape(client)}</strong> wants to see which certificates you have here.</p>"
    else:
        items = "".join(
            f"<li>{escape(label or 'A document')}<br><code class=soft>{escape(digest)}</code></li>"
            for label, digest in documents
        )
        request = (
            f"<p><strong>{escape(client)}</strong> wants to sign in the name of <strong>{escape(owner)}</strong>:</p>"
            f"<ul>{items}</ul>"
        )
    title = "Sign in" if credential is None else "Approve this signature?"
    return page(
        title,
        f'<form method="post" action="/oauth2/decision"><h1>{title}</h1>{request}'
        f'<p class="soft">{_ONLY_TRIAL}</p><input type="hidden" name="request" value="{escape(number)}">'
        '<div class="buttons"><button name="decision" value="approve">Approve</button>'
        '<button class="refuse" name="decision" value="refuse">Refuse</button></div></form>',
    )


def problem(text: str) -> bytes:
    return page("That did not work", f"<section><h1>That did not work</h1><p>{escape(text)}</p></section>")


def overview(
    credentials: Mapping[str, str], texts: Iterable[tuple[str, str, str]], signatures: Iterable[Mapping[str, Any]]
) -> bytes:
    """``credentials``: what one can sign with, and how; ``texts`` that were sent to the person: when, subject, content;
    ``signatures``: lines of the record, the newest first."""
    kinds = "".join(f"<li><code>{escape(name)}</code><br>{escape(how)}</li>" for name, how in credentials.items())
    sent = "".join(
        f"<li>{escape(content)}<br><span class=soft>{escape(subject)} · {escape(at)}</span></li>"
        for at, subject, content in texts
    )
    signature_items = "".join(
        f"<li>with <code>{escape(str(signature['credential']))}</code> on {_moment(str(signature['at']))}"
        f"<br><code class=soft>{escape(str(signature['hash']))}</code></li>"
        for signature in signatures
    )
    return page(
        "Local trust provider",
        f"<h1>Local trust provider</h1><p class=soft>{_ONLY_TRIAL}</p>"
        f"<section><h2>Signatures</h2><ul>{signature_items or '<li>None yet.</li>'}</ul></section>"
        f"<section><h2>Codes that were sent</h2><ul>{sent or '<li>None yet.</li>'}</ul></section>"
        f"<section><h2>Credentials</h2><ul>{kinds}</ul></section>",
    )


def stamps(sold: Iterable[tuple[str, str, str, str, str | None]], left: int) -> bytes:
    """The books of an issuer of duty stamps. ``sold``: serial, category, the name it was bought under, when it was
    bought, when it was used; the newest first. ``left``: how many can be bought."""
    entries = [
        f"<li><code>{escape(serial)}</code> {'used' if used_at else 'not used yet'}<br>"
        f"<span class=soft>{escape(category)}, bought as {escape(name)} on {_moment(bought_at)}"
        f"{f', used on {_moment(used_at)}' if used_at else ''}</span></li>"
        for serial, category, name, bought_at, used_at in sold
    ]
    return page(
        "Local stamp issuer",
        "<h1>Local stamp issuer</h1>"
        "<p class=soft>It runs on your own machine, to be tried. Its stamps are worth nothing.</p>"
        f"<section><h2>Stamps that were bought: {len(entries)}</h2><p class=soft>{left} are left to buy.</p>"
        f"<ul>{''.join(entries)}</ul></section>",
    )


def _moment(at: str) -> str:
    """A moment in ISO 8601, which is UTC, to the second."""
    return f"{escape(at[:10])} at {escape(at[11:19])} UTC"

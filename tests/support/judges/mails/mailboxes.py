"""What RFC 5322 allows in ``From``, ``To`` and ``Reply-To``, read by its grammar and by nobody's e-mail library.

Section 3.4 without the obsolete forms of section 4, which must not be written; characters beyond ASCII as RFC 6532 adds them.
Encoded words (RFC 2047) are atoms here, as they are to whoever looks for addresses.
"""

from lark import Lark, Token, Tree

_GRAMMAR = r"""
header: mailbox ("," mailbox)*
?mailbox: name_addr | addr_spec
name_addr: phrase? CFWS? "<" addr_spec ">" CFWS?
phrase: word+
word: CFWS? ATOM CFWS? | CFWS? QUOTED CFWS?
addr_spec: CFWS? LOCAL "@" DOMAIN CFWS? | CFWS? QUOTED "@" DOMAIN CFWS?

CFWS: /(\r\n)?[ \t]+/
ATOM: /[A-Za-z0-9!#$%&'*+\-\/=?^_`{|}~\u0080-\U0010ffff]+/
LOCAL: /[A-Za-z0-9!#$%&'*+\-\/=?^_`{|}~\u0080-\U0010ffff]+(\.[A-Za-z0-9!#$%&'*+\-\/=?^_`{|}~\u0080-\U0010ffff]+)*/
DOMAIN: /[A-Za-z0-9!#$%&'*+\-\/=?^_`{|}~\u0080-\U0010ffff]+(\.[A-Za-z0-9!#$%&'*+\-\/=?^_`{|}~\u0080-\U0010ffff]+)*/
QUOTED: /"([^"\\\x00-\x1f\x7f]|(\r\n)?[ \t]|\\[ -~\t])*"/
"""

_READER = Lark(_GRAMMAR, start="header", parser="earley", lexer="dynamic", ambiguity="resolve")


def mailboxes(value: str) -> list[str]:
    """The addresses of a header's value as it stands in the mail, line breaks included. Raises lark's UnexpectedInput where it is
    not what the grammar allows."""
    tree = _READER.parse(value)
    return [_address(one) for one in tree.find_data("addr_spec")]


def _address(spec: Tree[Token]) -> str:
    local, domain = (str(token) for token in spec.children if getattr(token, "type", "") != "CFWS")
    return f"{local}@{domain}"

"""What leaves the assistant: Markdown without HTML and images, links only to what the tools have returned.

Two layers. The Markdown parser produces tokens, in which the guard decides about every link; then nh3 lets
through a short list of tags and attributes, whatever happened before. The guard works by an allowlist: an
address that is not on it is removed, its text stays, and an empty list means that every address is removed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"a": {"href"}, "ol": {"start"}}
SCHEMES = ("http://", "https://")
TICKET_PATH = re.compile(r"/tickets/(\d{1,18})/?")
TICKET_REFERENCE = re.compile(r"(?<![\w&/#])#(\d{1,18})(?![\w-])")
# An address that stands in the text by itself. It begins where its scheme begins, so that a search is linear.
BARE_ADDRESS = re.compile(
    r"""(?<![a-z0-9+.\-])
        (?:[a-z0-9+.\-]*+://[^\s<>"'`]*
          |www\.[^\s<>"'`]+
          |(?:mailto|tel|sms|data|file|blob):[^\s<>"'`]+
          |[a-z0-9+.\-]*?(?:java|vb|live)script:[^\s<>"'`]*)""",
    re.IGNORECASE | re.VERBOSE,
)
TRAILING = ".,;:!?)]}*_~"


@dataclass(slots=True)
class _Guard:
    """Decides about links, and counts what it removes."""

    allowed: frozenset[str]
    known: frozenset[int]
    removed: int = 0

    def href(self, address: str) -> str | None:
        """The address a link may have, or None: then it is removed and counted."""
        ticket = TICKET_PATH.fullmatch(address)
        if ticket and int(ticket[1]) in self.known:
            return _ticket_path(int(ticket[1]))
        if self.lists(address):
            return address
        self.removed += 1
        return None

    def lists(self, address: str) -> bool:
        return address.lower().startswith(SCHEMES) and _comparable(address) in self.allowed


def render_markdown(
    text: str, allowed_links: Collection[str], known_ticket_ids: Collection[int]
) -> tuple[SafeString, int]:
    """`text` as safe HTML, and how many addresses were removed from it.

    `allowed_links` are the addresses that stand in tickets which a tool returned; `known_ticket_ids` those
    tickets: `#12` becomes a link to ticket 12 if it is one of them.
    """
    guard = _Guard(frozenset(_comparable(link) for link in allowed_links), frozenset(known_ticket_ids))
    tokens = _parser().parse(text)
    for token in tokens:
        _lower_heading(token)
        if token.children is not None:
            token.children = _guarded(token.children, guard)
        if token.type in ("fence", "code_block"):
            token.content, token.info = _without_addresses(token.content, guard), ""
    html = _parser().renderer.render(tokens, _parser().options, {})
    return mark_safe(_sanitised(html)), guard.removed


def mentioned_tickets(text: str) -> set[int]:
    """The tickets that `text` refers to, as #12 or by their address."""
    return {int(number) for number in TICKET_REFERENCE.findall(text)} | {
        int(number) for number in re.findall(r"/tickets/(\d{1,18})\b", text)
    }


@cache
def _parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough; no HTML, no images, no addresses turned into links by
    themselves.
    """
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # every link becomes a token, so that the guard sees and counts it
    return parser.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline", "entity"])


def _sanitised(html: str) -> str:
    return nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
    )


def _guarded(children: Sequence[Token], guard: _Guard) -> list[Token]:
    """The inline tokens with their links checked, and addresses and references in plain text treated."""
    result: list[Token] = []
    links: list[Token] = []  # the open links; one that was removed has no address
    for token in children:
        if token.type == "link_open":
            href = guard.href(str(token.attrs.get("href", "")))
            token.attrs = {} if href is None else {"href": href}
            links.append(token)
            result += [token] if href else []
        elif token.type == "link_close":
            result += [token] if links.pop().attrs else []
        elif links and not links[-1].attrs and links[-1].markup == "autolink":
            continue  # its text is the address itself
        elif token.type == "text":
            result += _text(token.content, guard, inside_link=any(link.attrs for link in links))
        else:
            if token.type == "code_inline":
                token.content = _without_addresses(token.content, guard)
            result.append(token)
    return result


def _text(text: str, guard: _Guard, *, inside_link: bool) -> list[Token]:
    """Plain text: listed addresses and known tickets become links, other addresses go."""
    if inside_link:
        return [_plain(_without_addresses(text, guard))]
    result: list[Token] = []
    position = 0
    for match in BARE_ADDRESS.finditer(text):
        result += _references(text[position : match.start()], guard)
        address, trailing = _split(match[0], guard)
        if guard.lists(address):
            result += _link(address, address)
        else:
            guard.removed += 1
        result.append(_plain(trailing))
        position = match.end()
    return result + _references(text[position:], guard)


def _references(text: str, guard: _Guard) -> list[Token]:
    result: list[Token] = []
    position = 0
    for match in TICKET_REFERENCE.finditer(text):
        if int(match[1]) not in guard.known:
            continue
        result += [_plain(text[position : match.start()]), *_link(_ticket_path(int(match[1])), match[0])]
        position = match.end()
    return [*result, _plain(text[position:])]


def _without_addresses(text: str, guard: _Guard) -> str:
    """`text` without the addresses that are not listed; none of the others becomes a link here."""

    def decide(match: re.Match[str]) -> str:
        address, trailing = _split(match[0], guard)
        if guard.lists(address):
            return match[0]
        guard.removed += 1
        return trailing

    return BARE_ADDRESS.sub(decide, text)


def _split(match: str, guard: _Guard) -> tuple[str, str]:
    """An address and the punctuation behind it, which belongs to the sentence unless a ticket has it so."""
    if guard.lists(match):
        return match, ""
    address = match.rstrip(TRAILING)
    return address, match[len(address) :]


def _comparable(address: str) -> str:
    """Equal for addresses that a browser would open alike, as far as that is certain."""
    try:
        parts = urlsplit(_parser().normalizeLink(address))
    except ValueError:  # not an address at all, such as "http://["
        return address
    return parts._replace(
        scheme=parts.scheme.lower(), netloc=parts.netloc.lower(), path=parts.path or "/"
    ).geturl()


def _lower_heading(token: Token) -> None:
    """The page has headings of its own above."""
    if token.type in ("heading_open", "heading_close"):
        token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"


def _ticket_path(ticket_id: int) -> str:
    return f"/tickets/{ticket_id}/"


def _plain(text: str) -> Token:
    return Token("text", "", 0, content=text)


def _link(href: str, text: str) -> list[Token]:
    return [Token("link_open", "a", 1, attrs={"href": href}), _plain(text), Token("link_close", "a", -1)]

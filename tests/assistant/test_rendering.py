"""What leaves is safe and grounded: a few examples, then whatever hypothesis can think of."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assistant.rendering import ATTRIBUTES, TAGS, mentioned_tickets, render_markdown

LISTED = "https://wiki.example.com/doors?a=1&b=2"
REL = ' rel="noopener noreferrer nofollow"'


def html(text: str, links: tuple[str, ...] = (LISTED,), tickets: tuple[int, ...] = (12,)) -> str:
    return str(render_markdown(text, links, tickets)[0]).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Hi** *there*", "<p><strong>Hi</strong> <em>there</em></p>"),
        ("# One", "<h3>One</h3>"),
        ("see #12 and #13", f'<p>see <a href="/tickets/12/"{REL}>#12</a> and #13</p>'),
        ("`#12` a#12 &#12; #12b", "<p><code>#12</code> a#12 &amp;#12; #12b</p>"),
        ("[door](/tickets/12/)", f'<p><a href="/tickets/12/"{REL}>door</a></p>'),
        ("[door](/tickets/13/)", "<p>door</p>"),
        ("[door](/tickets/12/delete/)", "<p>door</p>"),
        ("[a](http://evil.test/x)", "<p>a</p>"),
        ("see http://evil.test/x.", "<p>see .</p>"),
        ("<http://evil.test/x>", "<p></p>"),
        ("[a][1]\n\n[1]: http://evil.test", "<p>a</p>"),
        ("www.evil.test", "<p></p>"),
        ("//evil.test [a](//evil.test)", "<p>//evil.test a</p>"),
        ("`curl http://evil.test`", "<p><code>curl </code></p>"),
        ("![alt](http://evil.test/i.png)", "<p>!alt</p>"),
        ("[a](javascript:alert(1))", "<p>a</p>"),
        ("[a](JaVaScRiPt:alert(1))", "<p>a</p>"),
        ("[a](data:text/html;base64,xx)", "<p>a</p>"),
        ("run javascript:alert(1) now", "<p>run ) now</p>"),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>"),
        ("http\\://evil.test", "<p></p>"),
        ("mail to [us](mailto:a@b.test)", "<p>mail to us</p>"),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert html(text) == expected


def test_listed_addresses_become_links() -> None:
    link = f'<a href="https://wiki.example.com/doors?a=1&amp;b=2"{REL}>'
    assert html(f"[wiki]({LISTED})") == f"<p>{link}wiki</a></p>"
    assert html(f"({LISTED}).") == f"<p>({link}https://wiki.example.com/doors?a=1&amp;b=2</a>).</p>"
    assert html(f"<{LISTED}>") == f"<p>{link}https://wiki.example.com/doors?a=1&amp;b=2</a></p>"
    assert html(LISTED + "/more") == "<p></p>"
    assert html(LISTED.replace("wiki", "wiki.evil")) == "<p></p>"


def test_what_was_removed_is_counted() -> None:
    text = "[a](http://one.test) http://two.test <http://three.test> `http://four.test` [b](/tickets/99/)"
    assert render_markdown(text, (), ())[1] == 5
    assert render_markdown(f"{LISTED} #12", (LISTED,), (12,))[1] == 0


def test_an_empty_list_removes_and_never_replaces() -> None:
    rendered, removed = render_markdown(f"[wiki]({LISTED}) #12", (), ())
    assert (str(rendered).strip(), removed) == ("<p>wiki #12</p>", 1)


def test_mentions() -> None:
    assert mentioned_tickets("see #12, (#13) and /tickets/14/ but not a#15 or #16x") == {12, 13, 14}


class Reading(HTMLParser):
    """The tags and attributes of a piece of HTML, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


PIECES = st.sampled_from(
    [
        LISTED, "http://evil.test/x", "HTTPS://EVIL.TEST", "javascript:alert(1)", "JAVASCRIPT:", "vbscript:x",
        "data:text/html,x", "//evil.test", "\\", "/", ":", "://", "http", "[", "]", "(", ")", "[a](", "![",
        "<", ">", "<a href=", "<img src=x onerror=alert(1)>", "<script>", "onclick=", '"', "'", "`", "```\n",
        "~~", "*", "_", "#12", "#13", "#", "/tickets/12/", "/tickets/13/", "&#58;", "&colon;", "&", ";",
        "\n", "\n\n", "    ", "\t", "|", "-|-", "> ", "- ", "[1]: http://evil.test\n", "[1]", "\u200b",
        "\u202e", "\0", "\ufffd", "😀", "é", "1. ", "www.", "evil.test",
    ]
)  # fmt: skip
MARKDOWN = st.lists(PIECES | st.text(max_size=8), max_size=14).map("".join)


@settings(max_examples=400, deadline=None)
@given(MARKDOWN)
@example("a" * 40 + "http://evil.test")
@example("http:http://evil.test x://y//evil")
@example("[http://evil.test](" + LISTED + ")")
@example("javajavascript:script:alert(1)")
def test_nothing_unsafe_or_unlisted_ever_leaves(text: str) -> None:
    reading = Reading(html(text))
    for tag, attributes in reading.tags:
        assert tag in TAGS
        assert set(attributes) <= {*ATTRIBUTES.get(tag, ()), "rel"}
        if "href" in attributes:
            assert attributes["href"] in (LISTED, "/tickets/12/")
    for address in re.findall(r"[a-z0-9+.-]*://[^\s<>\"'`]*", reading.text, re.IGNORECASE):
        assert LISTED.startswith(address.rstrip(".,;:!?)]}*_~")) or address.startswith(LISTED)
    assert not re.search(r"(java|vb)script:", reading.text, re.IGNORECASE)


@settings(max_examples=150, deadline=None)
@given(MARKDOWN)
def test_an_empty_guard_lets_no_address_through(text: str) -> None:
    reading = Reading(html(text, (), ()))
    assert not any(tag == "a" for tag, _attributes in reading.tags)
    assert "://" not in reading.text


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=200))
def test_plain_words_are_all_kept(text: str) -> None:
    words = " ".join(re.findall(r"[A-Za-z0-9]+", text))
    assert Reading(html(words)).text.split() == words.split()


def test_long_texts_take_linear_time() -> None:
    for text in ("a" * 200_000, "http://" * 20_000, "#" * 100_000, "1#2" * 50_000):
        render_markdown(text, (), ())

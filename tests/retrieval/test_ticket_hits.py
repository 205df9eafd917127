"""How found tickets are put into words."""

import pytest

from retrieval.templatetags.ticket_hits import beyond


@pytest.mark.parametrize(
    ("passage", "rest"),
    [
        ("VPN geht nicht, seit 9 Uhr geht nichts mehr", "seit 9 Uhr geht nichts mehr"),
        ("VPN geht nicht\n\n– seit heute.", "seit heute."),
        ("VPN geht nicht!", ""),
        ("VPN geht nicht-mehr-so-gut", "VPN geht nicht-mehr-so-gut"),
        ("VPN geht nichtsdestotrotz", "VPN geht nichtsdestotrotz"),
        ("– seit heute", "– seit heute"),
    ],
)
def test_an_excerpt_goes_on_behind_the_title(passage: str, rest: str) -> None:
    assert beyond(passage, "VPN geht nicht") == rest

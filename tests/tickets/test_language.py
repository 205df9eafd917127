import pytest

from tickets.language import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Drucker im zweiten Stock reagiert nicht", "de"),
        ("The printer on the second floor does not respond at all", "en"),
        ("L'imprimante du deuxième étage ne répond plus depuis ce matin", "fr"),
        ("الطابعة في الطابق الثاني لا تعمل", "ar"),
        ("二楼的打印机没有反应", "zh"),
    ],
)
def test_tells_languages_apart(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize("text", ["", "   ", "VPN", "😀😀", "0x80070005 srv-01"])
def test_says_nothing_when_it_cannot_tell(text: str) -> None:
    assert detect_language(text) == ""

"""German or English, by the small words of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_GERMAN = _words(
    """der die das den dem des ein eine einen einem einer und oder aber ist sind war nicht kein keine ich du
    er wir ihr mein meine mich mir uns euch auf im an zu zum zur mit von vom bei nach seit für über wie wer wo
    wann warum welche welcher welches ja nein doch bitte danke hallo moin guten morgen abend servus geht kann
    kommt hat habe haben wird wurde auch noch schon sehr jetzt heute neu neue offene viele gibt es dass wenn
    weil anderes genau stimmt zeig zeige schließe setze hoch niedrig dringend drucker bildschirm rechner
    vielen dank gern spät kannst können ihnen alle meine meldet startet druckt funktioniert
    passwort kaputt defekt langsam fehler tür schlüssel telefon keins keines davon erstelle anlegen offen"""
)
_ENGLISH = _words(
    """the a an and or but is are not no i you he we they my your our on at to with from of for by how what
    who where when why which yes please thanks thank hello hi hey good morning afternoon evening goes can
    cannot can't does doesn't don't do has have had will would it its it's that this these there if because
    new open many different exactly right show close set high low urgent printer screen computer password
    time day long lot help got get says keeps screen
    broken slow error door key phone none them create up out after since works working fails failed"""
)


def is_german(texts: Iterable[str]) -> bool:
    """Whether the first of `texts` that shows a language is German; English if none does."""
    for text in texts:
        score = _score(text)
        if score:
            return score > 0
    return False


def _score(text: str) -> int:
    words = re.findall(r"[\w']+", text.lower())
    german = sum(word in _GERMAN for word in words) + 2 * len(re.findall(r"[äöüß]", text.lower()))
    return german - sum(word in _ENGLISH for word in words)

"""What a person wants, read from their words by patterns in German and English."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum


class Intent(StrEnum):
    GREETING = "greeting"
    THANKS = "thanks"
    TIME = "time"
    HELP = "help"
    LIST = "list"
    SHOW = "show"
    UPDATE = "update"
    CREATE = "create"
    YES = "yes"
    NO = "no"
    CANCEL = "cancel"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Wish:
    """An intent with what belongs to it: the words without salutation, ticket numbers, field values."""

    intent: Intent
    text: str = ""
    tickets: tuple[int, ...] = ()
    fields: dict[str, str] = field(default_factory=dict)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.VERBOSE)


_SALUTATION = _pattern(
    r"""^\s*(hallo|hi|hey|hello|moin(\s+moin)?|servus|grüß\s+gott|grüezi|guten\s+(morgen|tag|abend)
    |good\s+(morning|afternoon|evening))(\s+(zusammen|there|team|everyone|an\s+alle))?\b[\s,.!:;–-]*"""
)
_THANKS = _pattern(
    r"""^\W*((vielen\s+|herzlichen\s+)?danke?(\s+(dir|ihnen|schön|sehr|für.{0,40}))?|thank\s+you|thanks|thx|super|prima
    |perfekt|perfect|great|alles\s+klar|okay|ok|tschüss|bye|schönen\s+(tag|abend).{0,20}|have\s+a\s+nice\s+day)
    (\s+(a\s+lot|very\s+much|so\s+much|danke|thanks|vielen\s+dank))?\W*$"""
)
# As a whole message: "it fails all the time" and "falsche Uhrzeit am Terminal" are problems.
_TIME = _pattern(
    r"""^\W*(wie\s+spät|wie\s*viel\s+uhr|(welche|was\s+ist\s+die)\s+uhrzeit|welche[rsn]?\s+(tag|datum)
    |what\s+time|what\s+day|which\s+day|what\s+date|what('s|\s+is)\s+(the\s+(time|date)|today'?s\s+date))
    (\s+(is\s+it|is\s+today|it\s+is|ist\s+es|ist|haben\s+wir))?(\s+(now|jetzt|today|heute|gerade))*\W*$"""
)
_HELP = _pattern(
    r"""\b(was\s+kannst\s+du|was\s+können\s+sie|what\s+can\s+you\s+do|who\s+are\s+you|wer\s+(bist\s+du|sind\s+sie)
    |what\s+are\s+you|are\s+you\s+claude|bist\s+du\s+claude)\b|^\W*(hilfe|help)\W*$"""
)
_CANCEL = _pattern(
    r"""^\W*(nein,?\s+danke|no,?\s+thanks|no\s+thank\s+you|abbrechen|abbruch|cancel|vergiss\s+es|vergessen\s+sie\s+es
    |never\s*mind|forget\s+it|stop)\b"""
)
_NO = _pattern(
    r"""^\W*(nein|nee|nö|no|nope|keins|keines|keiner|none|neither)\b
    |\b(anderes\s+problem|ein\s+anderes\W*$|nicht\s+(das\s+gleiche|dasselbe|das\s+selbe)|ist\s+es\s+nicht|passt\s+nicht
    |different\s+(problem|issue|one)|another\s+problem|not\s+the\s+same|none\s+of\s+(these|them|those)
    |that'?s\s+not\s+it|not\s+it|keines\s+davon|keins\s+davon)\b"""
)
# "No, that is a different problem, not #7.": an answer whatever was asked, and never a problem of its own.
_REJECTION = _pattern(
    r"""^\W*(no|nein)\W+(that\s+is|that's|das\s+ist)\s+(a\s+different|another|ein\s+anderes)\s+problem
    (\W+(not|nicht)(\W+\d{1,18})+)?\W*$"""
)
_YES = _pattern(
    r"""^\W*(ja|jo|jep|jawohl|genau|stimmt|richtig|korrekt|yes|yep|yeah|yup|exactly|right|correct)\b
    |\b(das\s+ist\s+(es|meins|das)|das\s+habe\s+ich\s+auch|ich\s+(habe\s+das\s+)?auch|betrifft\s+mich\s+auch
    |that'?s\s+(it|the\s+one|mine)|that\s+is\s+(it|the\s+one|ticket|mine)|me\s+too|same\s+here|i\s+have\s+(this|that)\s+too)\b"""
)
_CREATE = _pattern(
    r"""\b((leg|lege|legen|erstell|erstelle|erstellen|eröffne|mach|mache)\b.{0,30}\bticket
    |ticket\b.{0,30}\b(anlegen|erstellen|eröffnen|aufmachen)|(create|open|file|make|raise|log)\s+(me\s+)?(a|the|an?\s*other)?
    \s*(new\s+)?ticket|(bitte|please)\s+(anlegen|create\s+it)|trotzdem\s+anlegen|create\s+(it\s+)?anyway)\b"""
)
_AFTER_COLON = re.compile(r"^[^:\n]{0,60}:\s*(\S.*)$", re.DOTALL)
_UPDATE = _pattern(
    r"""\b(schließ(e|en)?|schliess(e|en)?|close|reopen|resolve|assign|löse|lösen|setze?|setzen|set|change|ändere?|ändern
    |stelle?|mark|markiere?|wieder\s+öffnen|weise?|zuweisen|priorität|priority|raise|erhöhe)\b"""
)
_SHOW = _pattern(
    r"""\b(zeig|zeige|zeigen|show|open|öffne|read|lies|details?|tell\s+me\s+about|was\s+steht\s+in|look\s+at)\b"""
)
_LIST = _pattern(
    r"""^\W*(und\s+|and\s+)?(was|what|what's|whats|which|welche|wie\s*viele?|how\s+many|zeig\w*|show|list|liste|gibt\s+es
    |are\s+there|is\s+there|anzahl)\b.*\b(neu|neue[ns]?|neues|new|offen|offene[nrs]?|open|tickets?|unresolved|ungelöst\w*
    |dringend\w*|urgent|pending|wartend\w*|gelöst\w*|resolved|geschlossen\w*|closed)\b
    |^\W*(alle\s+|all\s+|meine\s+|my\s+)?(neue|offene|new|open|latest|neueste|dringende|urgent)?\s*tickets?\W*$"""
)
_SEARCH = _pattern(
    r"""^\W*(such\w*|finde?|search|look\s+for|gibt\s+es\s+(schon|bereits)|is\s+there\s+(already|a\s+ticket)|do\s+we\s+have)\b"""
)
_QUESTION = _pattern(
    r"^\W*(wer|was|wie|wo|wann|warum|wieso|welche\w*|who|what|how|where|when|why|which|kennst|do\s+you)\b"
)
_TROUBLE = _pattern(
    r"""\b(nicht|kein\w*|nichts|niemand|keiner|defekt\w*|kaputt\w*|fehler\w*|error\w*|problem\w*|störung\w*|ausfall\w*|geht\s+\w*\s*nicht
    |hängt|hängen|langsam\w*|abgestürzt|abstürz\w*|stürzt|vergessen|gesperrt|verloren|blockiert|bricht|leer|klemmt|flackert
    |rauscht|dreht|piept|verschwunden|fehlt|fehlen|ausgefallen|kaputtgegangen|spinnt|gestört|unerreichbar|abgelaufen
    |not|can't|cannot|can\s*not|won't|doesn't|don't|isn't|fails?|failed|failing|failure|broken|down|slow|crash\w*|stuck
    |forgot|forgotten|locked|lost|missing|unable|refus\w*|disconnect\w*|drops?|freez\w*|frozen|jam\w*|expired|denied
    |unreachable|offline|leak\w*|flicker\w*|dead|brauche|benötige|need|repar\w*|repair|fix)\b"""
)

_STATUSES = (
    ("unresolved", r"offen\w*|open|ungelöst\w*|unresolved"),
    ("new", r"neu|neue[nrs]?|new"),
    ("pending", r"wartend\w*|pending|waiting"),
    ("resolved", r"gelöst\w*|resolved|erledigt\w*|solved"),
    ("closed", r"geschlossen\w*|closed"),
)
_NEW_STATUSES = (
    ("open", r"wieder\s+öffnen|reopen|in\s+arbeit|in\s+progress|offen|open"),
    ("closed", r"schließ(e|en)?|schliess(e|en)?|close|closed|geschlossen"),
    ("resolved", r"gelöst|resolved?|löse|lösen|erledigt|solved"),
    ("pending", r"wartend|pending|waiting|warten"),
)
_PRIORITIES = (
    ("urgent", r"urgent|dringend\w*|kritisch"),
    ("high", r"high|hoch|hohe[nr]?"),
    ("low", r"low|niedrig\w*"),
    ("normal", r"normal\w*"),
)
_ASSIGNEE = _pattern(r"\b(?:assign\b.*?\bto|weise?\b.*?[#]\d+|zuweisen\s+an)\s+@?([\w.@+-]+)")
READ_CHARACTERS = 1000  # a wish stands at the beginning; patterns over long texts are slow
MAX_WORDS_OF_A_CHOICE = 6  # "I think it is #7"
_NUMBER = re.compile(r"#\s?(\d{1,18})\b|\b(?:ticket|nummer|number|no\.|nr\.?)\s+(\d{1,18})\b", re.IGNORECASE)


def read_wish(text: str, *, asked: bool) -> Wish:
    """What `text` wants; `asked` means that candidates were shown and the person has not answered yet."""
    words = _SALUTATION.sub("", text, count=1).strip()
    if not words:
        return Wish(Intent.GREETING)
    opening = words[:READ_CHARACTERS]
    tickets = tuple(int(a or b) for a, b in _NUMBER.findall(opening))
    return Wish(_intent(opening, tickets, asked), words, tickets, _fields(opening, tickets))


def _intent(words: str, tickets: tuple[int, ...], asked: bool) -> Intent:
    for smalltalk, pattern in ((Intent.THANKS, _THANKS), (Intent.HELP, _HELP), (Intent.TIME, _TIME)):
        if pattern.search(words):
            return smalltalk
    if _REJECTION.search(words):
        return Intent.NO
    if asked and (answer := _answer(words, tickets)):
        return answer
    if tickets and _YES.search(words):
        return Intent.YES
    if tickets and (action := _about_ticket(words)):
        return action
    if _CREATE.search(words):
        return Intent.CREATE
    if _LIST.search(words) and not _SEARCH.search(words):
        return Intent.LIST
    return Intent.PROBLEM if _is_problem(words) else Intent.UNKNOWN


def _answer(words: str, tickets: tuple[int, ...]) -> Intent | None:
    """The answer to "is it one of these?"; None if the words are something else."""
    for intent, pattern in ((Intent.CANCEL, _CANCEL), (Intent.NO, _NO), (Intent.YES, _YES)):
        if pattern.search(words):
            return intent
    asks_for_more = _UPDATE.search(words) or _SHOW.search(words)
    names_one = tickets and len(words.split()) <= MAX_WORDS_OF_A_CHOICE and not asks_for_more
    return Intent.YES if names_one else None


def _about_ticket(words: str) -> Intent | None:
    if _UPDATE.search(words) and _new_values(words):
        return Intent.UPDATE
    if _SHOW.search(words) or len(words.split()) <= 2:
        return Intent.SHOW
    return None


def _is_problem(words: str) -> bool:
    if _TROUBLE.search(words) or _SEARCH.search(words):
        return True
    return len(words.split()) >= 3 and not _QUESTION.search(words)


def wants_only_search(words: str) -> bool:
    """Whether a search was asked for by name, so that no ticket must come of it."""
    return bool(_SEARCH.search(words))


def problem_in(words: str) -> str:
    """The problem in "create a ticket: …", else an empty string."""
    after = _AFTER_COLON.match(words)
    return after.group(1).strip() if after else ""


def _fields(words: str, tickets: tuple[int, ...]) -> dict[str, str]:
    return _new_values(words) if tickets else _filters(words)


def _new_values(words: str) -> dict[str, str]:
    values = {"status": _first(_NEW_STATUSES, words), "priority": _first(_PRIORITIES, words)}
    assignee = _ASSIGNEE.search(words)
    if assignee:
        values = {"assignee": {"mir": "me"}.get(assignee.group(1), assignee.group(1))}
    resolution = _AFTER_COLON.match(words)
    if resolution and values.get("status") in ("closed", "resolved"):
        values["resolution"] = resolution.group(1).strip()
    return {name: value for name, value in values.items() if value}


def _filters(words: str) -> dict[str, str]:
    mine = re.search(r"\b(meine[nr]?|my|mine)\b", words, re.IGNORECASE)
    today = re.search(r"\b(heute|today)\b", words, re.IGNORECASE)
    status = _first(_STATUSES, words)
    filters = {
        "status": "" if today and status == "new" else status,
        "priority": _first(_PRIORITIES, words),
        "reporter": "me" if mine else "",
        "created_since": "today" if today else "",
    }
    return {name: value for name, value in filters.items() if value}


def _first(table: tuple[tuple[str, str], ...], words: str) -> str:
    for value, pattern in table:
        if re.search(rf"\b(?:{pattern})\b", words, re.IGNORECASE):
            return value
    return ""

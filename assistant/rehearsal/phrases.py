"""The sentences of the rehearsal model, English and German side by side."""

from __future__ import annotations

import re

_PHRASES: dict[str, tuple[str, str]] = {
    "greeting": (
        "Hello! Describe your problem, and I will look whether it has been reported already.",
        "Hallo! Beschreiben Sie Ihr Problem, dann sehe ich nach, ob es schon gemeldet wurde.",
    ),
    "thanks": ("You are welcome.", "Gern geschehen."),
    "time": ("It was {clock} on {date} when you wrote.", "Als Sie schrieben, war es {clock} am {date}."),
    "no_clock": ("I have no clock, so I cannot tell.", "Ich habe keine Uhr, das kann ich nicht sagen."),
    "help": (
        "I am the rehearsal model, not Claude: a script with simple rules. I can\n\n"
        "- look for similar tickets when you describe a problem, and create one if there is none,\n"
        "- say what is new, what is open and how many,\n"
        "- show a ticket (`show #12`) and change it (`close #12`, `#12 priority high`).",
        "Ich bin das Probemodell, nicht Claude: ein Skript mit einfachen Regeln. Ich kann\n\n"
        "- nach ähnlichen Tickets suchen, wenn Sie ein Problem beschreiben, und eines anlegen, wenn es keins "
        "gibt,\n"
        "- sagen, was neu ist, was offen ist und wie viele,\n"
        "- ein Ticket zeigen (`zeige #12`) und ändern (`schließe #12`, `#12 Priorität hoch`).",
    ),
    "unknown": ("I did not understand that. ", "Das habe ich nicht verstanden. "),
    "looking": ("I will look for similar tickets.", "Ich suche nach ähnlichen Tickets."),
    "found": (
        "This may have been reported already:",
        "Das könnte schon gemeldet sein:",
    ),
    "similar": (
        "There are similar tickets, none of them for certain the same:",
        "Es gibt ähnliche Tickets, keines ist sicher dasselbe:",
    ),
    "others": ("There is also:", "Es gibt noch:"),
    "first": (
        "Before I create a ticket, please look at this:",
        "Bevor ich ein Ticket anlege, sehen Sie sich bitte das an:",
    ),
    "which": (
        "Is it one of these? Then I will add your report there. If not, say so, and I will create a new "
        "ticket.",
        "Ist es eines davon? Dann ergänze ich Ihre Meldung dort. Wenn nicht, sagen Sie es, und ich lege ein "
        "neues Ticket an.",
    ),
    "is_it": (
        "Is it this one? Then I will add your report there. If not, say so, and I will create a new ticket.",
        "Ist es dieses? Dann ergänze ich Ihre Meldung dort. Wenn nicht, sagen Sie es, und ich lege ein neues "
        "Ticket an.",
    ),
    "nothing": (
        "I looked and found no similar ticket.",
        "Ich habe gesucht und kein ähnliches Ticket gefunden.",
    ),
    "coverage": (
        "{indexed} of {total} tickets are searchable so far.",
        "Bisher sind {indexed} von {total} Tickets durchsuchbar.",
    ),
    "creating": ("So I am creating a new ticket.", "Deshalb lege ich ein neues Ticket an."),
    "creating_new": ("Then I am creating a new ticket.", "Dann lege ich ein neues Ticket an."),
    "unavailable": (
        "I could not search for tickets that mean the same{cause}. There may be one already.",
        "Ich konnte nicht nach Tickets suchen, die dasselbe meinen{cause}. Vielleicht gibt es schon eines.",
    ),
    "by_words": (
        "These share words or identifiers with your message:",
        "Diese haben Wörter oder Kennungen mit Ihrer Meldung gemeinsam:",
    ),
    "created": ("I created ticket #{id}: **{title}**.", "Ich habe Ticket #{id} angelegt: **{title}**."),
    "unchecked": (
        "It is marked as not checked for duplicates.",
        "Es ist als nicht auf Dubletten geprüft gekennzeichnet.",
    ),
    "not_created": ("I created nothing.", "Ich habe nichts angelegt."),
    "commented": (
        "I added your report to #{id}. It needs no second ticket.",
        "Ich habe Ihre Meldung bei #{id} ergänzt. Ein zweites Ticket ist nicht nötig.",
    ),
    "noted": (
        "Noted: it is #{id}. It needs no second ticket.",
        "Vermerkt: Es ist #{id}. Ein zweites Ticket ist nicht nötig.",
    ),
    "same_here": ("I have this too: {problem}", "Das habe ich auch: {problem}"),
    "same_here_plain": ("I have this too.", "Das habe ich auch."),
    "noted_different": (
        "Noted. If you have another problem, please describe it.",
        "Ist notiert. Wenn Sie ein weiteres Problem haben, beschreiben Sie es bitte.",
    ),
    "which_ticket": (
        "Which ticket do you mean? Please give its number, like #12.",
        "Welches Ticket meinen Sie? Bitte nennen Sie die Nummer, etwa #12.",
    ),
    "describe": (
        "Please describe the problem in a sentence.",
        "Bitte beschreiben Sie das Problem in einem Satz.",
    ),
    "total": ("**{total}** {tickets}{filters}", "**{total}** {tickets}{filters}"),
    "shown": (". The newest {shown}:", ". Die neuesten {shown}:"),
    "ticket": ("ticket", "Ticket"),
    "tickets": ("tickets", "Tickets"),
    "changed": ("I changed #{id}:", "Ich habe #{id} geändert:"),
    "unchanged": ("#{id} already was like that; nothing changed.", "#{id} war schon so; nichts geändert."),
    "change": ("- {field}: {old} → {new}", "- {field}: {old} → {new}"),
    "empty": ("empty", "leer"),
    "failed": ("That did not work: {error}", "Das hat nicht geklappt: {error}"),
    "no_tools": (
        "I cannot use my tools at the moment, so I neither looked nor changed anything.",
        "Ich kann meine Werkzeuge gerade nicht benutzen und habe deshalb nichts nachgesehen und nichts "
        "geändert.",
    ),
    "no_tool": (
        "The tool {tool} is not available to me, so I could not do that.",
        "Das Werkzeug {tool} steht mir nicht zur Verfügung, deshalb konnte ich das nicht tun.",
    ),
    "solved_by": ("solved by: {resolution}", "gelöst durch: {resolution}"),
    "age_today": ("today", "heute"),
    "age_one": ("1 day old", "1 Tag alt"),
    "age_days": ("{days} days old", "{days} Tage alt"),
    "comments": ("**Comments**", "**Kommentare**"),
    "internal": ("internal", "intern"),
    "resolution": ("**Resolution:** {resolution}", "**Lösung:** {resolution}"),
}

_WORDS: dict[str, str] = {
    "new": "neu",
    "open": "offen",
    "pending": "wartend",
    "resolved": "gelöst",
    "closed": "geschlossen",
    "unresolved": "ungelöst",
    "low": "niedrig",
    "normal": "normal",
    "high": "hoch",
    "urgent": "dringend",
    "likely": "wahrscheinlich",
    "possible": "möglich",
    "status": "Status",
    "priority": "Priorität",
    "assignee": "Bearbeiter",
    "category": "Kategorie",
    "title": "Titel",
    "description": "Beschreibung",
    "resolution": "Lösung",
    "reporter": "Meldende Person",
    "resolved_at": "gelöst am",
}


# Causes of an unavailable search, by a word of the tool's reason.
_CAUSES = (
    ("switched off", "the search by meaning is switched off", "die Suche nach Bedeutung ist abgeschaltet"),
    ("no API key", "no key for it is set up", "dafür ist kein Schlüssel eingerichtet"),
    ("refused the API key", "the provider refused the key", "der Anbieter hat den Schlüssel abgelehnt"),
    ("cannot be reached", "the provider cannot be reached", "der Anbieter ist nicht erreichbar"),
    (
        "vector extension",
        "the database has no vector extension",
        "der Datenbank fehlt die Vektor-Erweiterung",
    ),
    ("indexed yet", "no ticket has been indexed yet", "noch ist kein Ticket erfasst"),
    ("another embedding model", "the index is of another model", "der Index stammt von einem anderen Modell"),
)


class Voice:
    """Speaks one of the two languages."""

    def __init__(self, german: bool) -> None:
        self.german = german

    def say(self, phrase: str, **values: object) -> str:
        return _PHRASES[phrase][self.german].format(**values)

    def cause(self, reason: str) -> str:
        """Why a search was unavailable; an unknown reason only in English, in which it is written."""
        for mark, english, german in _CAUSES:
            if mark in reason:
                return german if self.german else english
        return "" if self.german else plain(first_sentence(reason)).rstrip(".")

    def word(self, value: object) -> str:
        """A status, priority, band or field name in this language; other values as they are."""
        text = str(value)
        return _WORDS.get(text, text) if self.german else text.replace("_", " ")

    def age(self, days: object) -> str:
        if not isinstance(days, int | float):
            return ""
        if days < 1:
            return self.say("age_today")
        return self.say("age_one") if int(days) == 1 else self.say("age_days", days=int(days))


def plain(text: object) -> str:
    """A ticket's text as one line in which nothing counts as Markdown."""
    return re.sub(r"([\\`*\[\]<>])", r"\\\1", " ".join(str(text).split()))


def first_sentence(text: str) -> str:
    """What comes after it in an error is meant for the model."""
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, cut at a space, with an ellipsis where something is missing."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip() + "…"

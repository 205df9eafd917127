"""The buttons on a suggested ticket: what is kept, what is written, and when the conversation goes on."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import translation

from assistant.judging import judge, record_verdict
from assistant.models import Conversation, ConversationTicket, Message, ToolCall, Turn
from assistant.tools.definitions import MAX_TEXT
from retrieval.models import Verdict
from tests.factories import TicketFactory, UserFactory
from tickets.models import Comment, Ticket

REPORT = "The printer on the second floor does not print"
NOT_THESE = "No, that is a different problem, not #{}."


@pytest.fixture
def alice(db: None) -> User:
    return UserFactory(agent=True, username="alice")


@pytest.fixture
def candidates(alice: User) -> list[Ticket]:
    return [TicketFactory(reporter=alice) for _ in range(3)]


def reported(conversation: Conversation, text: str) -> Turn:
    """A turn that answered what the person wrote."""
    turn = Turn.objects.create(conversation=conversation, status=Turn.Status.DONE, question=text)
    content = [{"type": "text", "text": text}]
    Message.objects.create(
        conversation=conversation, turn=turn, role=Message.Role.USER, content=content, from_person=True
    )
    return turn


def called(turn: Turn, name: str, **fields: Any) -> ToolCall:
    fields = {"input": {}, "result": "{}", "tool_use_id": f"toolu_{ToolCall.objects.count()}"} | fields
    return ToolCall.objects.create(conversation=turn.conversation, turn=turn, name=name, **fields)


def searched(turn: Turn, likely: list[Ticket], name: str = "find_similar_tickets", **fields: Any) -> ToolCall:
    hits = [{"ticket": ticket.pk, "band": "likely"} for ticket in likely]
    for ticket in likely:
        ConversationTicket.objects.get_or_create(
            conversation=turn.conversation, ticket=ticket, defaults={"version_seen": 1}
        )
    return called(turn, name, outcome="found", hits=hits, **fields)


def press(conversation: Conversation, ticket: Ticket, judgement: str) -> None:
    judge(conversation=conversation, user=conversation.user, candidates=[ticket.pk], judgement=judgement)


def said(conversation: Conversation) -> list[str]:
    return [message.text for message in conversation.messages.filter(from_person=True)]


def judgement_of(conversation: Conversation, ticket: Ticket) -> str:
    return conversation.known_tickets.get(ticket=ticket).judgement


# -- "Not the same" ----------------------------------------------------------------------------------------


def test_the_last_likely_one_turned_down_is_an_answer(
    conversation: Conversation, candidates: list[Ticket]
) -> None:
    searched(reported(conversation, REPORT), candidates)
    for ticket in candidates:
        press(conversation, ticket, "different")
    assert said(conversation) == [REPORT, NOT_THESE.format(candidates[-1].pk)]


def test_after_thats_it_the_others_are_only_noted(
    conversation: Conversation, candidates: list[Ticket]
) -> None:
    mine, *others = candidates
    searched(reported(conversation, REPORT), candidates)
    press(conversation, mine, "same")
    for ticket in others:
        press(conversation, ticket, "different")
        assert judgement_of(conversation, ticket) == "different"
    assert said(conversation) == [REPORT]
    assert conversation.turns.count() == 1
    assert Verdict.objects.filter(judgement="different").count() == 2


@pytest.mark.parametrize("written", [{"name": "create_ticket", "creates": True}, {"name": "add_comment"}])
def test_after_a_ticket_or_comment_of_the_assistant_the_others_are_only_noted(
    conversation: Conversation, candidates: list[Ticket], written: dict[str, Any]
) -> None:
    searched(reported(conversation, REPORT), candidates[:1])
    called(reported(conversation, "Something else"), **written)
    press(conversation, candidates[0], "different")
    assert judgement_of(conversation, candidates[0]) == "different"
    assert len(said(conversation)) == 2


def test_what_failed_has_settled_nothing(conversation: Conversation, candidates: list[Ticket]) -> None:
    turn = reported(conversation, REPORT)
    searched(turn, candidates[:1])
    called(turn, "add_comment", is_error=True)
    press(conversation, candidates[0], "different")
    assert said(conversation)[-1] == NOT_THESE.format(candidates[0].pk)


def test_a_card_of_an_earlier_problem_does_not_answer_for_the_present_one(
    conversation: Conversation, candidates: list[Ticket]
) -> None:
    old, new, _other = candidates
    searched(reported(conversation, "The VPN is slow"), [old])
    searched(reported(conversation, REPORT), [new])
    press(conversation, old, "different")
    assert len(said(conversation)) == 2
    press(conversation, new, "different")
    assert said(conversation)[-1] == NOT_THESE.format(new.pk)


def test_thats_it_for_an_earlier_problem_does_not_settle_the_present_one(
    conversation: Conversation, candidates: list[Ticket]
) -> None:
    """The same ticket may come up again, for another problem."""
    both, new, _other = candidates
    searched(reported(conversation, "The VPN is slow"), [both])
    press(conversation, both, "same")
    searched(reported(conversation, REPORT), [both, new])
    press(conversation, new, "different")
    assert said(conversation)[-1] == NOT_THESE.format(new.pk)


# -- "That's it, me too" -----------------------------------------------------------------------------------


def bodies(ticket: Ticket) -> list[str]:
    return [comment.body for comment in ticket.comments.all()]


def test_the_comment_has_the_persons_words(conversation: Conversation, candidates: list[Ticket]) -> None:
    searched(reported(conversation, REPORT), candidates)
    reported(conversation, "Hm, let me see")
    press(conversation, candidates[0], "same")
    assert bodies(candidates[0]) == [f"I have this problem too.\n\n{REPORT}"]


def test_the_comment_is_in_the_language_of_the_words(
    conversation: Conversation, candidates: list[Ticket]
) -> None:
    report = "Der Drucker im zweiten Stock druckt seit heute Morgen nicht mehr"
    searched(reported(conversation, report), candidates)
    press(conversation, candidates[0], "same")
    with translation.override("de"):
        assert bodies(candidates[0]) == [f"{translation.gettext('I have this problem too.')}\n\n{report}"]


def test_candidates_of_a_refused_creation_get_its_description(
    conversation: Conversation, candidates: list[Ticket]
) -> None:
    turn = reported(conversation, "No, that is another one")
    creation = {"title": "Printer", "description": REPORT}
    searched(turn, candidates, name="create_ticket", is_error=True, input=creation)
    press(conversation, candidates[0], "same")
    assert REPORT in bodies(candidates[0])[0]


def test_very_long_words_are_cut_visibly(conversation: Conversation, candidates: list[Ticket]) -> None:
    searched(reported(conversation, "long words " * 9_000), candidates)
    press(conversation, candidates[0], "same")
    body = bodies(candidates[0])[0]
    assert body.endswith("…")
    assert len(body) < MAX_TEXT + 100


def test_one_person_has_the_problem_once(conversation: Conversation, candidates: list[Ticket]) -> None:
    """Pressed again after a change of mind, and in another conversation."""
    ticket = candidates[0]
    searched(reported(conversation, REPORT), candidates)
    for judgement in ("same", "same", "different", "same"):
        press(conversation, ticket, judgement)
    other = Conversation.objects.create(user=conversation.user)
    searched(reported(other, REPORT), candidates)
    result = record_verdict(conversation=other, user=other.user, candidate=ticket, judgement="same")
    assert (result.comment, result.already) == (None, False)
    assert len(bodies(ticket)) == 1
    assert "do not add another" in other.messages.latest("pk").text


def test_another_person_has_it_too(conversation: Conversation, candidates: list[Ticket]) -> None:
    theirs = Conversation.objects.create(user=UserFactory(agent=True))
    for one in (conversation, theirs):
        searched(reported(one, REPORT), candidates)
        press(one, candidates[0], "same")
    assert Comment.objects.values("author").distinct().count() == 2

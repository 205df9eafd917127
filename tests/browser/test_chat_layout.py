"""Where things stand in the chat: nothing is covered, nothing scrolls away from whoever reads."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.fakes.claude import ScriptedClaude

pytestmark = pytest.mark.django_db(transaction=True)

Step = Callable[[], None]

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
LONG = "\n\n".join(f"Paragraph {number} of a long answer." for number in range(60))


@pytest.fixture
def claude(settings: Any) -> Iterator[ScriptedClaude]:
    with ScriptedClaude() as server:
        settings.ANTHROPIC_BASE_URL = server.base_url
        yield server


def ask(page: Page, text: str) -> None:
    turns = page.locator("article.turn").count()
    page.get_by_label("Your message").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator("article.turn")).to_have_count(turns + 1)
    expect(page.locator("article.turn").last).not_to_have_attribute("aria-busy", "true")


def edges(page: Page, selector: str) -> tuple[float, float]:
    """Top and bottom of the last element that matches, in pixels of the window."""
    box = page.locator(selector).last.bounding_box()
    assert box is not None
    return box["y"], box["y"] + box["height"]


def scrolls(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollHeight - innerHeight"))


@pytest.mark.parametrize("backend", ["rehearsal", "claude"])
def test_a_short_thread_fills_the_window_and_does_not_scroll(
    page: Page, claude: ScriptedClaude, alice: User, log_in: Step, settings: Any, backend: str
) -> None:
    settings.ASSISTANT_BACKEND = backend
    claude.reply("Hello!")
    log_in()
    ask(page, "Hallo")
    expect(page.locator(".top .notice-strip")).to_have_count(int(backend == "rehearsal"))
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        assert scrolls(page) == 0
        assert edges(page, ".question")[0] >= edges(page, ".top")[1]
        assert edges(page, ".composer-dock")[1] == pytest.approx(size["height"], abs=1)


def test_the_view_follows_an_answer_until_its_question_is_at_the_top(
    page: Page, claude: ScriptedClaude, alice: User, log_in: Step
) -> None:
    claude.reply(LONG).reply(LONG)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    log_in()
    ask(page, "First")
    ask(page, "Second")
    top, _bottom = edges(page, ".question")
    assert 0 <= top - edges(page, ".top")[1] < 40
    page.get_by_role("button", name="To the newest").click()
    expect(page.get_by_role("button", name="To the newest")).to_be_hidden()
    assert edges(page, ".turn-foot")[1] <= edges(page, ".composer")[0]


def test_a_long_question_leaves_half_of_the_view_to_its_answer(
    page: Page, claude: ScriptedClaude, alice: User, log_in: Step
) -> None:
    claude.reply(LONG)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    log_in()
    ask(page, "a line of a log\n" * 100)
    assert 350 < edges(page, ".answer")[0] < 500


def test_a_message_that_could_not_be_sent_covers_nothing(
    page: Page, claude: ScriptedClaude, alice: User, log_in: Step
) -> None:
    claude.reply(LONG)
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    log_in()
    ask(page, "First")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.context.set_offline(True)
    page.get_by_label("Your message").fill("Second")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Your text is still here")
    expect(page.locator(".turn-foot")).to_be_in_viewport()
    assert edges(page, ".turn-foot")[1] <= edges(page, ".composer-error")[0]
    page.script_errors.clear()  # type: ignore[attr-defined]  # the browser itself reports the lost connection


def test_an_empty_list_keeps_its_distance(page: Page, alice: User, log_in: Step) -> None:
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    log_in()
    assert edges(page, ".sidebar-empty")[0] - edges(page, ".new-conversation")[1] >= 12

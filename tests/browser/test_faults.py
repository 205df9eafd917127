"""Impatient people and broken lines, in a real browser."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from assistant.models import Message, Turn
from tests.browser.conftest import Rehearsal
from tests.fakes.claude import Drop, ScriptedClaude

pytestmark = pytest.mark.django_db(transaction=True)

Step = Callable[[], None]


@pytest.fixture
def claude(settings: Any) -> Iterator[ScriptedClaude]:
    with ScriptedClaude() as server:
        settings.ANTHROPIC_BASE_URL = server.base_url
        yield server


def send(page: Page, text: str) -> None:
    page.get_by_label("Your message").fill(text)
    page.keyboard.press("Enter")


def last_turn(page: Page) -> Any:
    return page.locator("article.turn").last


def test_stop_ends_the_answer(page: Page, slow_rehearsal: Rehearsal, alice: User, log_in: Step) -> None:
    log_in()
    send(page, "help")
    page.get_by_role("button", name="Stop").click()
    expect(last_turn(page)).to_have_attribute("data-status", "interrupted", timeout=10_000)
    expect(last_turn(page)).to_contain_text("You stopped this answer.")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert Turn.objects.get().status == Turn.Status.INTERRUPTED


def test_a_broken_answer_stays_visible_and_can_be_tried_again(
    page: Page, claude: ScriptedClaude, alice: User, log_in: Step
) -> None:
    claude.fail(Drop(after=6))
    claude.reply("Here is the whole answer.")
    log_in()
    send(page, "hello")
    expect(last_turn(page)).to_have_attribute("data-status", "interrupted", timeout=15_000)
    expect(last_turn(page)).to_contain_text("This answer is incomplete.")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("article.turn")).to_have_count(2)
    expect(last_turn(page)).to_contain_text("Here is the whole answer.")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_double_submit_is_one_message(page: Page, claude: ScriptedClaude, alice: User, log_in: Step) -> None:
    claude.reply("Hello.")
    log_in()
    page.get_by_label("Your message").fill("hello")
    page.evaluate(
        """() => {
            const form = document.getElementById("composer");
            form.requestSubmit(); form.requestSubmit(); form.requestSubmit();
        }"""
    )
    expect(last_turn(page)).to_contain_text("Hello.", timeout=15_000)
    assert Message.objects.filter(from_person=True).count() == 1
    assert Turn.objects.count() == 1


def test_what_was_typed_survives_a_failure_and_a_reload(
    page: Page, claude: ScriptedClaude, alice: User, log_in: Step
) -> None:
    log_in()
    page.context.set_offline(True)
    send(page, "a long description")
    expect(page.get_by_role("alert")).to_contain_text("Your text is still here")
    expect(page.get_by_label("Your message")).to_have_value("a long description")
    page.context.set_offline(False)
    page.script_errors.clear()  # type: ignore[attr-defined]  # the browser itself reports the lost connection
    page.reload()
    expect(page.get_by_label("Your message")).to_have_value("a long description")
    assert not Message.objects.exists()


def test_a_refused_message_stays_in_the_box(
    page: Page, claude: ScriptedClaude, alice: User, log_in: Step
) -> None:
    log_in()
    send(page, "x" * 100_001)
    expect(page.get_by_role("alert")).to_contain_text("Nothing was sent.")
    assert len(page.get_by_label("Your message").input_value()) == 100_001
    page.script_errors.clear()  # type: ignore[attr-defined]  # the browser itself reports the refusal


def test_an_empty_message_is_not_sent(page: Page, claude: ScriptedClaude, alice: User, log_in: Step) -> None:
    log_in()
    send(page, "   ")
    expect(page.get_by_label("Your message")).to_have_value("   ")
    assert page.url.endswith("/chat/")


def test_enter_while_composing_does_not_send(
    page: Page, claude: ScriptedClaude, alice: User, log_in: Step
) -> None:
    log_in()
    page.get_by_label("Your message").fill("にほん")
    page.evaluate(
        """() => document.getElementById("message").dispatchEvent(
            new KeyboardEvent("keydown", {key: "Enter", isComposing: true, bubbles: true}))"""
    )
    page.get_by_label("Your message").press("Shift+Enter")
    expect(page.get_by_label("Your message")).to_have_value("にほん\n")
    assert not Message.objects.exists()


def test_a_second_message_waits_and_is_answered_next(
    page: Page, slow_rehearsal: Rehearsal, alice: User, log_in: Step
) -> None:
    log_in()
    send(page, "help")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    send(page, "hello")
    expect(page.locator("#tail .question")).to_contain_text("Waiting")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("article.turn")).to_have_count(2, timeout=10_000)
    expect(page.locator("#tail .question")).to_have_count(0)
    expect(last_turn(page)).to_have_attribute("data-status", "done", timeout=60_000)


def test_two_tabs_share_one_answer(page: Page, claude: ScriptedClaude, alice: User, log_in: Step) -> None:
    claude.reply("The one and only answer.")
    claude.reply("The second answer.")
    log_in()
    send(page, "hello")
    expect(last_turn(page)).to_contain_text("The one and only answer.", timeout=15_000)
    other = page.context.new_page()
    other.goto(page.url)
    send(page, "and now?")
    expect(last_turn(page)).to_contain_text("The second answer.", timeout=15_000)
    other.reload()
    expect(other.locator("article.turn")).to_have_count(2)
    assert Turn.objects.count() == 2
    assert len(claude.requests) == 2


def test_works_without_javascript(
    browser: Any, asgi_server: str, claude: ScriptedClaude, alice: User
) -> None:
    claude.reply("An answer without a script.")
    context = browser.new_context(base_url=asgi_server, java_script_enabled=False, locale="en-GB")
    page = context.new_page()
    page.goto("/login/")
    page.fill("#id_username", "alice")
    page.fill("#id_password", "correct horse battery")
    page.click("button:text('Log in')")
    page.fill("#message", "hello")
    page.click("button:text('Send')")
    page.click("button:text('Show the answer')")
    expect(page.locator("article.turn")).to_contain_text("An answer without a script.")
    context.close()

"""What a conversation leaves behind: messages as content blocks, and one record for every turn."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from assistant.fields import ExactJSONField

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django_stubs_ext import StrOrPromise


# The loop gives a sign of life every few seconds (loop.HEARTBEAT_SECONDS); after this long it is dead.
ABANDONED_AFTER = timedelta(seconds=20)


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def owned_by(self, user: User) -> ConversationQuerySet:
        """The conversations of one person: nobody else ever sees them."""
        return self.filter(user=user)


class Conversation(models.Model):
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="conversations",
        verbose_name=_("person"),
    )
    title = models.CharField(_("title"), max_length=120, blank=True)
    # The first turn (by id) that is still sent to the model; older ones no longer fit (0: all are sent).
    first_sent_turn = models.BigIntegerField(default=0, editable=False)
    # Thinking blocks are bound to everything before them. What is older than this message is sent without
    # them, because the history before it has been shortened since (0: nothing has been changed yet).
    thinking_from = models.BigIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    updated_at = models.DateTimeField(_("updated"), default=timezone.now, editable=False)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        ordering = ["-updated_at", "-id"]
        indexes = [models.Index(fields=["user", "-updated_at"], name="conversation_recent")]

    def __str__(self) -> str:
        return self.title or f"#{self.pk}"


class TurnQuerySet(models.QuerySet["Turn"]):
    def owned_by(self, user: User) -> TurnQuerySet:
        return self.filter(conversation__user=user)

    def active(self) -> TurnQuerySet:
        """Turns that wait for their stream or are being answered; at most one in a conversation."""
        return self.filter(status__in=Turn.ACTIVE)

    def abandoned(self) -> TurnQuerySet:
        """Turns whose process died: they run, but have given no sign of life for a while."""
        return self.filter(status=Turn.Status.RUNNING, heartbeat_at__lt=timezone.now() - ABANDONED_AFTER)

    def alive(self) -> TurnQuerySet:
        """Turns that are being answered right now."""
        return self.filter(status=Turn.Status.RUNNING, heartbeat_at__gte=timezone.now() - ABANDONED_AFTER)


class Turn(models.Model):
    """One answer of the assistant with everything it did for it. Written by the loop alone."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("Waiting")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        INTERRUPTED = "interrupted", _("Interrupted")

    ACTIVE = (Status.QUEUED, Status.RUNNING)

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="turns", verbose_name=_("conversation")
    )
    retry_of = models.OneToOneField(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="retried_as",
        verbose_name=_("retry of"),
    )
    status = models.CharField(_("status"), max_length=12, choices=Status.choices, default=Status.QUEUED)
    question = models.TextField(_("question"), blank=True)
    answer = models.TextField(_("answer"), blank=True)
    # Text of a model call that broke off. Shown, marked as incomplete, and never sent back as an answer.
    partial = models.TextField(_("incomplete text"), blank=True)
    model = models.CharField(_("model"), max_length=100, blank=True)
    stop_reason = models.CharField(_("stop reason"), max_length=60, blank=True)
    error = models.CharField(_("error"), max_length=40, blank=True)  # a code of assistant.faults
    error_params = models.JSONField(default=dict, blank=True, editable=False)
    steps = models.PositiveSmallIntegerField(_("model calls"), default=0)
    tokens_in = models.PositiveIntegerField(_("tokens in"), default=0)  # cache writes included, reads not
    tokens_out = models.PositiveIntegerField(_("tokens out"), default=0)
    tokens_cached = models.PositiveIntegerField(_("tokens from cache"), default=0)
    first_token_ms = models.PositiveIntegerField(_("first token (ms)"), null=True, blank=True)
    total_ms = models.PositiveIntegerField(_("total (ms)"), null=True, blank=True)
    model_ms = models.PositiveIntegerField(_("model (ms)"), default=0)
    tools_ms = models.PositiveIntegerField(_("tools (ms)"), default=0)
    rest_ms = models.PositiveIntegerField(_("rest (ms)"), default=0)
    sources_found = models.PositiveSmallIntegerField(_("sources found"), default=0)
    sources_used = models.PositiveSmallIntegerField(_("sources used"), default=0)
    links_removed = models.PositiveSmallIntegerField(_("links removed"), default=0)
    messages_left_out = models.PositiveIntegerField(_("earlier messages left out"), default=0)
    helpful = models.BooleanField(_("helpful"), null=True, blank=True)
    feedback = models.CharField(_("feedback"), max_length=500, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    heartbeat_at = models.DateTimeField(_("last sign of life"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    objects = TurnQuerySet.as_manager()

    class Meta:
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"], condition=Q(status__in=["queued", "running"]), name="one_active_turn"
            )
        ]
        indexes = [
            models.Index(fields=["conversation", "id"], name="turn_in_order"),
            models.Index(fields=["heartbeat_at"], condition=Q(status="running"), name="turn_heartbeat"),
            models.Index(fields=["created_at"], name="turn_by_day"),
        ]

    def __str__(self) -> str:
        return f"{self.pk}: {self.get_status_display()}"

    @property
    def is_active(self) -> bool:
        return self.status in self.ACTIVE

    @property
    def is_abandoned(self) -> bool:
        """Whether its process has died; see `TurnQuerySet.abandoned`."""
        silent_since = timezone.now() - ABANDONED_AFTER
        return self.status == self.Status.RUNNING and (self.heartbeat_at or self.created_at) < silent_since

    @property
    def is_incomplete(self) -> bool:
        """Ended without a whole answer: to be shown as such, with the sentence of `error_sentence`."""
        return self.status in (self.Status.FAILED, self.Status.INTERRUPTED)

    @property
    def can_continue(self) -> bool:
        """Cut at the output limit: offer "continue" rather than "retry"."""
        return self.status == self.Status.INTERRUPTED and self.error == "cut"

    @property
    def error_sentence(self) -> StrOrPromise:
        """What went wrong, for the person, in the active language; empty when nothing did."""
        from assistant.faults import sentence  # faults needs no models, but models load first

        return sentence(self.error, self.error_params) if self.error else ""


class Message(models.Model):
    """One message of the API's history. `turn` is empty while a message waits for the turn before it."""

    class Role(models.TextChoices):
        USER = "user", _("Person")
        ASSISTANT = "assistant", _("Assistant")

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    turn = models.ForeignKey(Turn, null=True, blank=True, on_delete=models.CASCADE, related_name="messages")
    role = models.CharField(_("role"), max_length=9, choices=Role.choices)
    content = ExactJSONField(_("content blocks"))
    # Written by a person (as opposed to tool results and notes, which the API calls "user" too).
    from_person = models.BooleanField(default=False)
    # Empty for what no person has sent, and then not part of the unique constraint.
    client_key = models.CharField(max_length=64, null=True, blank=True, editable=False)  # noqa: DJ001
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "client_key"], name="one_message_per_submit")
        ]
        indexes = [
            models.Index(fields=["conversation"], condition=Q(turn=None), name="message_waiting"),
            models.Index(fields=["conversation", "turn", "id"], name="message_in_order"),
        ]

    def __str__(self) -> str:
        return f"{self.role}: {self.text[:60]}"

    @property
    def text(self) -> str:
        return "\n\n".join(block["text"] for block in self.content if block.get("type") == "text")


class ToolCall(models.Model):
    """One tool use, its result, and what is needed to undo or repeat it safely.

    `(conversation, tool_use_id)` is unique: this constraint, in the transaction of the write itself, is
    what makes a write happen at most once.
    """

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="tool_calls")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="tool_calls")
    tool_use_id = models.CharField(max_length=200)
    name = models.CharField(_("tool"), max_length=100)
    input = ExactJSONField(_("arguments"))
    result = models.TextField(_("result"))
    is_error = models.BooleanField(_("error"), default=False)
    error = models.CharField(_("reason"), max_length=40, blank=True)  # why it was refused, stable code
    duration_ms = models.PositiveIntegerField(_("duration (ms)"), default=0)
    ticket = models.ForeignKey(
        "tickets.Ticket",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        verbose_name=_("ticket"),
    )
    # The ticket created by this call; kept although `ticket` may point elsewhere for other tools.
    creates = models.BooleanField(_("created a ticket"), default=False)
    search_log = models.ForeignKey(
        "retrieval.SearchLog", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    outcome = models.CharField(_("search outcome"), max_length=12, blank=True)  # found, nothing, unavailable
    reason = models.CharField(max_length=300, blank=True)  # why the search was unavailable
    hits = models.JSONField(
        default=list, blank=True
    )  # [{"ticket", "rank", "band", "similarity", "matched", "passage"}]
    changes = models.JSONField(default=list, blank=True)  # [{"field", "old", "new"}] as raw values, for undo
    version_after = models.PositiveIntegerField(null=True, blank=True)
    undone_at = models.DateTimeField(_("undone"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "tool_use_id"], name="tool_use_runs_once"),
        ]
        indexes = [models.Index(fields=["conversation", "name", "id"], name="toolcall_in_order")]

    def __str__(self) -> str:
        return self.name

    @property
    def can_undo(self) -> bool:
        return bool(self.changes) and self.undone_at is None and not self.is_error


class ConversationTicket(models.Model):
    """A ticket that a tool returned in this conversation: what the link guard and stale updates go by."""

    class Judgement(models.TextChoices):
        SAME = "same", _("Same problem")
        RELATED = "related", _("Related")
        DIFFERENT = "different", _("Different problem")

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="known_tickets")
    ticket = models.ForeignKey("tickets.Ticket", on_delete=models.CASCADE, related_name="+")
    version_seen = models.PositiveIntegerField()  # the ticket's version when the model last read it
    addresses = models.JSONField(default=list, blank=True)  # web addresses in the texts that were returned
    judgement = models.CharField(_("judgement"), max_length=10, choices=Judgement.choices, blank=True)
    judged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("ticket in conversation")
        verbose_name_plural = _("tickets in conversations")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "ticket"], name="one_row_per_known_ticket")
        ]

    def __str__(self) -> str:
        return f"#{self.ticket_id}"

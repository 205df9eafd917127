"""What retrieval keeps: vectors, the state of each index, profiles of the ranking, searches, verdicts,
workers, possible duplicates, incidents.

What people decide (verdicts, candidates, incidents) is written by `judging` and `incidents`, the rest by
machines; the admin shows it read-only.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Greatest, Least, Now
from django.utils.translation import gettext_lazy as _
from pgvector.django import HalfVectorField

from tickets.models import Ticket

MODEL_KEY_LENGTH = 120


def model_key_field(**options: Any) -> models.CharField:
    """The name of an embedding model with its dimensions, e.g. `voyage-4:1024`."""
    return models.CharField(_("model"), max_length=MODEL_KEY_LENGTH, db_collation="C", **options)


class TicketEmbedding(models.Model):
    """One vector of one ticket by one model, or the record of why there is none yet.

    `content_hash` is the ticket's hash at the moment its text was *read*; it is empty while a first vector is
    under way. `embedding` has no fixed dimension, because rows of several models live side by side; it is
    unit length, stored PLAIN (set in the migration) and compared by inner product. `failed_hash` names the
    text that could not be embedded, so that an edited ticket is tried at once instead of waiting for the
    pause of its old text.
    """

    ticket = models.ForeignKey(Ticket, models.CASCADE, related_name="embeddings", verbose_name=_("ticket"))
    model = model_key_field()
    content_hash = models.BinaryField(_("content hash"), default=b"", max_length=32)
    embedding = HalfVectorField(null=True)
    embedded_chars = models.PositiveIntegerField(_("embedded characters"), default=0)
    total_chars = models.PositiveIntegerField(_("characters"), default=0)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    error = models.TextField(_("error"), blank=True, default="")
    failed_hash = models.BinaryField(null=True, max_length=32)
    retry_at = models.DateTimeField(_("retry at"), null=True)
    claimed_until = models.DateTimeField(_("claimed until"), null=True)
    updated_at = models.DateTimeField(_("updated at"), db_default=Now())

    class Meta:
        verbose_name = _("ticket embedding")
        verbose_name_plural = _("ticket embeddings")
        constraints = [
            # Also the covering index of the worker's sweep, which reads it in order and index-only.
            models.UniqueConstraint(
                fields=["model", "ticket"], include=["content_hash"], name="embedding_model_ticket"
            ),
        ]
        indexes = [
            models.Index(
                fields=["model", "ticket"],
                condition=models.Q(failed_hash__isnull=False),
                name="embedding_failed",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.ticket_id} {self.model}"

    @property
    def is_shortened(self) -> bool:
        return 0 < self.embedded_chars < self.total_chars


class IndexState(models.Model):
    """How far the vectors of one model have come, written by the workers so that a search need not count.

    Times are the database's. `total` counts the tickets up to `last_id`. Every ticket changed before
    `swept_at` has a current vector or a recorded failure. `completed_at` is set once, when the model first
    covered everything: from then on searches use it.
    """

    model = model_key_field(primary_key=True)
    total = models.PositiveIntegerField(_("tickets"), default=0)
    indexed = models.PositiveIntegerField(_("indexed"), default=0)
    failed = models.PositiveIntegerField(_("failed"), default=0)
    last_id = models.BigIntegerField(default=0)
    oldest_waiting_at = models.DateTimeField(_("oldest waiting since"), null=True)
    counted_at = models.DateTimeField(_("counted at"), null=True)
    swept_at = models.DateTimeField(_("swept at"), null=True)
    completed_at = models.DateTimeField(_("complete since"), null=True)
    second_stage = models.CharField(_("second stage"), max_length=20, blank=True, default="")
    recall = models.FloatField(_("recall of the second stage"), null=True)
    recall_measured_at = models.DateTimeField(_("recall measured at"), null=True)

    class Meta:
        verbose_name = _("index state")
        verbose_name_plural = _("index states")

    def __str__(self) -> str:
        return self.model


class WorkerState(models.Model):
    """One row per worker process: its heartbeat and, while it pauses, why."""

    class Activity(models.TextChoices):
        IDLE = "idle", _("idle")
        WORKING = "working", _("working")
        PAUSED = "paused", _("paused")
        OFF = "off", _("switched off")
        STOPPED = "stopped", _("stopped")

    name = models.CharField(_("name"), max_length=200, primary_key=True)
    model = model_key_field(blank=True)
    activity = models.CharField(_("activity"), max_length=10, choices=Activity, default=Activity.IDLE)
    reason_code = models.CharField(max_length=40, blank=True, default="")
    reason = models.TextField(_("reason"), blank=True, default="")
    paused_until = models.DateTimeField(_("paused until"), null=True)
    embedded = models.PositiveBigIntegerField(_("embedded since start"), default=0)
    # Since start as well. A default of the database: the workers of the previous version still write.
    batches = models.PositiveBigIntegerField(_("batches"), db_default=0)
    outages = models.PositiveBigIntegerField(_("outages"), db_default=0)
    batch_seconds = models.FloatField(_("seconds of embedding"), db_default=0.0)
    started_at = models.DateTimeField(_("started at"), db_default=Now())
    heartbeat_at = models.DateTimeField(_("heartbeat"), db_default=Now())

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return self.name


class SearchProfile(models.Model):
    """How the hits of one model are weighed and judged.

    The score of a hit is the convex sum of its parts by these weights, and orders; `floor` and `likely` are
    bounds on its cosine, and what they are for is in `ranking.is_worth_reading()` and `is_likely()`. Without
    `calibrated_at` both bounds are guesses, and whoever shows a band says so.
    """

    model = model_key_field(primary_key=True)
    meaning_weight = models.FloatField(_("weight of meaning"), default=1.0)
    identifier_weight = models.FloatField(_("weight of shared identifiers"), default=0.2)
    word_weight = models.FloatField(_("weight of words"), default=0.5)
    floor = models.FloatField(_("floor"), null=True)
    likely = models.FloatField(_("bound of likely"), null=True)
    alert_rate = models.FloatField(_("alert rate"), null=True)
    precision = models.FloatField(_("precision by verdicts"), null=True)
    calibrated_at = models.DateTimeField(_("calibrated at"), null=True)
    calibrated_tickets = models.PositiveIntegerField(_("tickets at calibration"), default=0)
    evidence = models.TextField(_("measurements that justify the weights"), blank=True, default="")

    class Meta:
        verbose_name = _("search profile")
        verbose_name_plural = _("search profiles")

    def __str__(self) -> str:
        return self.model

    @property
    def is_calibrated(self) -> bool:
        return self.calibrated_at is not None


class SearchLog(models.Model):
    """One search as it was answered: what was asked, what was found, how long it took and why it failed."""

    created_at = models.DateTimeField(_("created at"), db_default=Now(), db_index=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("user")
    )
    text = models.TextField(_("text"))
    outcome = models.CharField(_("outcome"), max_length=20)
    reason_code = models.CharField(_("reason"), max_length=40, blank=True, default="")
    model = model_key_field(blank=True, default="")
    profile = models.JSONField(_("profile"), default=dict)
    filters = models.JSONField(_("filters"), default=dict)
    hits = models.JSONField(_("hits"), default=list)
    embed_ms = models.FloatField(_("embedding, ms"), null=True)
    search_ms = models.FloatField(_("search, ms"), null=True)
    indexed = models.PositiveIntegerField(_("indexed"), default=0)
    total = models.PositiveIntegerField(_("tickets"), default=0)

    class Meta:
        verbose_name = _("search")
        verbose_name_plural = _("searches")

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M} {self.text[:60]}"


class Verdict(models.Model):
    """What a person said about a pair: the same problem, a related one, or a different one.

    `ticket` is the subject; it is empty until the described problem has become a ticket of its own. A merge
    of two tickets that nothing had brought together is a verdict that was not `suggested`.
    """

    class Judgement(models.TextChoices):
        SAME = "same", _("the same")
        RELATED = "related", _("related")
        DIFFERENT = "different", _("different")

    search = models.ForeignKey(
        SearchLog, models.SET_NULL, null=True, blank=True, related_name="verdicts", verbose_name=_("search")
    )
    ticket = models.ForeignKey(
        Ticket, models.CASCADE, null=True, blank=True, related_name="verdicts", verbose_name=_("ticket")
    )
    candidate = models.ForeignKey(
        Ticket, models.CASCADE, related_name="verdicts_as_candidate", verbose_name=_("candidate")
    )
    judgement = models.CharField(_("judgement"), max_length=10, choices=Judgement)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    suggested = models.BooleanField(_("had been suggested"), default=True, db_default=True)
    created_at = models.DateTimeField(_("created at"), db_default=Now())

    class Meta:
        verbose_name = _("verdict")
        verbose_name_plural = _("verdicts")

    def __str__(self) -> str:
        return f"#{self.candidate_id}: {self.get_judgement_display()}"


class DuplicateCheck(models.Model):
    """Whether a ticket has been compared with the others since it got its first vector.

    The row is written together with that vector, so that no check is lost; without `checked_at` it is due.
    An unexpected failure is kept in `error` and tried again: a check that failed has found nothing out.
    """

    ticket = models.OneToOneField(
        Ticket,
        models.CASCADE,
        primary_key=True,
        related_name="vector_check",
        verbose_name=_("ticket"),
    )
    due_at = models.DateTimeField(_("due"), db_default=Now())
    checked_at = models.DateTimeField(_("checked at"), null=True)
    found = models.PositiveSmallIntegerField(_("found"), db_default=0)
    error = models.TextField(_("error"), blank=True, db_default="")

    class Meta:
        verbose_name = _("duplicate check")
        verbose_name_plural = _("duplicate checks")
        indexes = [
            models.Index(
                fields=["due_at"], condition=models.Q(checked_at__isnull=True), name="retrieval_check_due"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.ticket_id}"


class DuplicateCandidate(models.Model):
    """A pair that may be the same problem, for a person to judge. One row a pair, for ever: what has been
    judged is not proposed again.

    `ASIDE`: nobody has judged it and nobody has to, while one of the tickets is solved or merged.
    """

    class State(models.TextChoices):
        OPEN = "open", _("open")
        ASIDE = "aside", _("set aside")
        DECIDED = "decided", _("decided")

    ticket = models.ForeignKey(
        Ticket, models.CASCADE, related_name="duplicate_candidates", verbose_name=_("newer ticket")
    )
    candidate = models.ForeignKey(
        Ticket, models.CASCADE, related_name="newer_candidates", verbose_name=_("older ticket")
    )
    similarity = models.FloatField(_("similarity"), null=True)
    score = models.FloatField(_("score"))
    likely = models.BooleanField(_("likely the same"), default=False)
    matched = ArrayField(models.CharField(max_length=20), verbose_name=_("matched by"), default=list)
    identifiers = ArrayField(models.TextField(), verbose_name=_("shared identifiers"), default=list)
    model = model_key_field()
    created_at = models.DateTimeField(_("created at"), db_default=Now())
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.OPEN)
    postponed_at = models.DateTimeField(_("postponed at"), null=True)
    judgement = models.CharField(_("judgement"), max_length=10, choices=Verdict.Judgement, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("decided by")
    )
    decided_at = models.DateTimeField(_("decided at"), null=True)

    class Meta:
        verbose_name = _("possible duplicate")
        verbose_name_plural = _("possible duplicates")
        constraints = [
            models.UniqueConstraint(
                Least("ticket", "candidate"), Greatest("ticket", "candidate"), name="retrieval_candidate_pair"
            ),
            models.CheckConstraint(
                condition=~models.Q(ticket=models.F("candidate")), name="retrieval_candidate_two"
            ),
        ]
        indexes = [
            # The order of the inbox.
            models.Index(
                models.F("postponed_at").asc(nulls_first=True),
                models.F("likely").desc(),
                models.F("similarity").desc(nulls_last=True),
                "created_at",
                "id",
                condition=models.Q(state="open"),
                name="retrieval_candidate_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.ticket_id} – #{self.candidate_id}"


class Incident(models.Model):
    """Many reports of one outage: proposed by the worker, decided by a person."""

    class State(models.TextChoices):
        PROPOSED = "proposed", _("proposed")
        CONFIRMED = "confirmed", _("confirmed")
        DISMISSED = "dismissed", _("dismissed")
        UNDONE = "undone", _("undone")

    parent = models.ForeignKey(
        Ticket, models.SET_NULL, null=True, related_name="incidents", verbose_name=_("parent")
    )
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.PROPOSED)
    created_at = models.DateTimeField(_("created at"), db_default=Now())
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("decided by")
    )
    decided_at = models.DateTimeField(_("decided at"), null=True)

    class Meta:
        verbose_name = _("incident")
        verbose_name_plural = _("incidents")
        indexes = [models.Index(fields=["state", "-created_at"], name="retrieval_incident_state")]

    def __str__(self) -> str:
        return f"{self.pk} {self.state}"

    @property
    def is_open(self) -> bool:
        """Whether it can be confirmed."""
        return self.state in (self.State.PROPOSED, self.State.UNDONE)


class IncidentMember(models.Model):
    """A ticket that reports the incident. `merged` tells what confirming it has merged, for the undo."""

    incident = models.ForeignKey(Incident, models.CASCADE, related_name="members", verbose_name=_("incident"))
    ticket = models.OneToOneField(
        Ticket, models.CASCADE, related_name="incident_member", verbose_name=_("ticket")
    )
    merged = models.BooleanField(_("merged"), default=False)
    added_at = models.DateTimeField(_("added at"), db_default=Now())

    class Meta:
        verbose_name = _("report of an incident")
        verbose_name_plural = _("reports of incidents")

    def __str__(self) -> str:
        return f"#{self.ticket_id}"

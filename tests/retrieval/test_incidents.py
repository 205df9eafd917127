"""Outages: what is proposed, what confirming does, and that all of it can be undone."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from retrieval import incidents, judging
from retrieval.calibration import Bounds
from retrieval.incidents import affected_people, belonging_together, fullest_window
from retrieval.models import Incident, IncidentMember, SearchProfile, Verdict
from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket

pytestmark = pytest.mark.django_db
PAGES = "/admin/tickets/ticket/incidents/"
REPORTS = [
    "VPN is down",
    "VPN geht nicht",
    "Cannot connect to VPN",
    "No VPN connection",
    "VPN does not connect",
]
LIMITS = Bounds(floor=0.3, likely=0.7)


def embed() -> None:
    call_command("embed_worker", "--once", verbosity=0)


@pytest.fixture
def profile() -> SearchProfile:
    return SearchProfile.objects.create(
        model="use-multilingual-3:512", floor=0.35, likely=0.6, calibrated_at=timezone.now()
    )


def report(titles: list[str], **given: Any) -> list[Ticket]:
    return [TicketFactory(title=title, **given) for title in titles]


@pytest.fixture
def outage(profile: SearchProfile) -> Incident:
    report(REPORTS)
    TicketFactory(title="Parking permit")
    embed()
    return Incident.objects.get()


# -- proposing -----------------------------------------------------------------------------------------------


def test_five_reports_within_the_hour_are_proposed(outage: Incident) -> None:
    members = Ticket.objects.filter(incident_member__incident=outage)
    assert {ticket.title for ticket in members} == set(REPORTS)
    assert outage.state == "proposed"
    assert outage.parent == members.order_by("created_at", "pk").first()


def test_four_are_not(profile: SearchProfile) -> None:
    report(REPORTS[:4])
    embed()
    assert not Incident.objects.exists()


def test_the_number_and_the_window_are_settings(profile: SearchProfile, settings: Any) -> None:
    settings.INCIDENT_TICKETS = 2
    settings.INCIDENT_WINDOW_MINUTES = 10
    report(REPORTS[:1], created_at=timezone.now() - timedelta(minutes=11))
    report(REPORTS[1:2])
    embed()
    assert not Incident.objects.exists()
    report(REPORTS[2:3])
    embed()
    assert Incident.objects.get().members.count() == 2


def test_not_over_a_day(profile: SearchProfile) -> None:
    for hours, title in enumerate(REPORTS):
        report([title], created_at=timezone.now() - timedelta(hours=4 * hours))
    embed()
    assert not Incident.objects.exists()


def test_different_problems_are_no_outage(profile: SearchProfile) -> None:
    report(
        [
            "Parking permit",
            "Printer jams",
            "Badge lost",
            "New monitor",
            "Outlook shows no mail",
            "Wasser tropft",
        ]
    )
    embed()
    assert not Incident.objects.exists()


def test_an_import_is_no_outage(profile: SearchProfile) -> None:
    report(REPORTS, source="import")
    embed()
    assert not Incident.objects.exists()


def test_a_later_report_joins(outage: Incident) -> None:
    (late,) = report(["VPN connection is not possible"])
    embed()
    assert late.incident_member.incident == outage
    assert Incident.objects.count() == 1


def test_what_was_dismissed_is_not_proposed_again(outage: Incident, agent: User) -> None:
    incidents.dismiss(outage, by=agent)
    report(["VPN connection is not possible"])
    embed()
    assert Incident.objects.count() == 1
    assert outage.members.count() == len(REPORTS)


def test_a_chain_of_loosely_similar_reports_does_not_belong_together() -> None:
    cosines = np.array([[1, 0.8, 0.2, 0.1], [0.8, 1, 0.8, 0.2], [0.2, 0.8, 1, 0.8], [0.1, 0.2, 0.8, 1]])
    assert belonging_together(cosines, 0, LIMITS) == [0, 1]


def test_each_is_likely_the_same_as_one_and_near_to_all() -> None:
    cosines = np.array([[1, 0.8, 0.5, 0.9], [0.8, 1, 0.75, 0.2], [0.5, 0.75, 1, 0.5], [0.9, 0.2, 0.5, 1]])
    assert sorted(belonging_together(cosines, 1, LIMITS)) == [0, 1, 2]


def test_the_fullest_hour() -> None:
    start = timezone.now()
    times = {
        number: start + timedelta(minutes=minutes) for number, minutes in enumerate([0, 50, 70, 80, 100])
    }
    assert fullest_window(times, 2, timedelta(hours=1)) == [1, 2, 3, 4]


# -- deciding ------------------------------------------------------------------------------------------------


def test_confirming_merges_all_into_the_parent(outage: Incident, agent: User) -> None:
    parent = outage.parent
    assert parent is not None
    taken = incidents.confirm(outage, by=agent, parent=parent)
    assert (taken.merged, taken.refused) == (4, [])
    assert parent.whole_chain().count() == 5
    outage.refresh_from_db()
    assert (outage.state, outage.decided_by) == ("confirmed", agent)


def test_undo_gives_every_report_its_status_back(outage: Incident, agent: User) -> None:
    second = outage.members.order_by("ticket")[1].ticket
    second.change(by=agent, via="admin", status="pending")
    incidents.confirm(outage, by=agent, parent=outage.parent)
    incidents.undo(outage, by=agent)
    second.refresh_from_db()
    assert (second.status, second.duplicate_of) == ("pending", None)
    assert not Ticket.objects.exclude(duplicate_of=None).exists()
    outage.refresh_from_db()
    assert outage.is_open


def test_undo_leaves_alone_what_was_merged_before(outage: Incident, agent: User) -> None:
    first, second = (member.ticket for member in outage.members.order_by("ticket")[:2])
    second.merge_into(first, agent)
    incidents.confirm(outage, by=agent, parent=first)
    incidents.undo(outage, by=agent)
    second.refresh_from_db()
    assert second.duplicate_of == first


def test_undo_leaves_alone_what_was_merged_elsewhere_since(outage: Incident, agent: User) -> None:
    incidents.confirm(outage, by=agent, parent=outage.parent)
    member = outage.members.filter(merged=True).select_related("ticket").first()
    assert member is not None
    elsewhere = Ticket.objects.get(title="Parking permit")
    judging.unmerge(member.ticket, by=agent)
    judging.merge(member.ticket, elsewhere, by=agent)
    incidents.undo(outage, by=agent)
    assert list(Ticket.objects.exclude(duplicate_of=None)) == [member.ticket]
    member.ticket.refresh_from_db()
    assert member.ticket.duplicate_of == elsewhere


def test_undo_takes_back_what_was_judged_of_a_report(outage: Incident, agent: User) -> None:
    parent = outage.parent
    assert parent is not None
    incidents.confirm(outage, by=agent, parent=parent)
    member = outage.members.filter(merged=True).select_related("ticket").first()
    assert member is not None
    judging.unmerge(member.ticket, by=agent)
    judging.merge(member.ticket, parent, by=agent)
    incidents.undo(outage, by=agent)
    member.ticket.refresh_from_db()
    assert member.ticket.duplicate_of is None
    assert judging.latest_verdict(member.ticket_id, parent.pk) is None


def test_a_new_parent(outage: Incident, agent: User) -> None:
    incidents.confirm(outage, by=agent, title="VPN outage")
    outage.refresh_from_db()
    assert outage.parent is not None
    assert outage.parent.title == "VPN outage"
    assert outage.parent.whole_chain().count() == 6


def test_a_new_parent_needs_a_title(outage: Incident, agent: User) -> None:
    with pytest.raises(ValidationError):
        incidents.confirm(outage, by=agent, title="  ")
    outage.refresh_from_db()
    assert outage.state == "proposed"


def test_two_agents_decide(outage: Incident, agent: User) -> None:
    incidents.dismiss(outage, by=UserFactory(agent=True))
    with pytest.raises(ValidationError, match="meanwhile: it is dismissed"):
        incidents.confirm(outage, by=agent, parent=outage.parent)


def test_late_reports_are_taken_in(outage: Incident, agent: User) -> None:
    incidents.confirm(outage, by=agent, parent=outage.parent)
    (late,) = report(["VPN connection is not possible"])
    embed()
    assert incidents.take_in(outage, by=agent).merged == 1
    late.refresh_from_db()
    assert late.duplicate_of == outage.parent


def test_resolving_all_with_one_public_comment(outage: Incident, agent: User) -> None:
    incidents.confirm(outage, by=agent, parent=outage.parent)
    incidents.resolve(outage, by=agent, resolution="New certificate.", comment="It works again.")
    member = outage.members.order_by("ticket").last()
    assert member is not None
    assert [comment.body for comment in member.ticket.thread()] == ["It works again."]
    parent = member.ticket.chain_end()
    assert (parent.status, parent.resolution) == ("resolved", "New certificate.")


def test_everybody_counts_once(outage: Incident) -> None:
    people, parent = outage.members.count(), outage.parent
    assert parent is not None
    bob = UserFactory()
    for _ in range(2):
        Verdict.objects.create(candidate=parent, judgement="same", by=bob)
    assert affected_people(outage) == people + 1


@pytest.mark.parametrize("action", [incidents.confirm, incidents.dismiss, incidents.undo, incidents.take_in])
def test_needs_the_permission(outage: Incident, action: Any) -> None:
    with pytest.raises(PermissionDenied):
        action(outage, by=UserFactory(is_staff=True, permissions=["view_ticket"]))


def test_a_new_parent_needs_the_permission_to_add(client: Client, outage: Incident) -> None:
    changer = UserFactory(is_staff=True, permissions=["view_ticket", "change_ticket"])
    before = Ticket.objects.count()
    with pytest.raises(PermissionDenied):
        incidents.confirm(outage, by=changer, title="VPN outage")
    assert Ticket.objects.count() == before
    client.force_login(changer)
    html = client.get(f"{PAGES}{outage.pk}/").content.decode()
    assert f'id="parent-{outage.parent_id}"' in html
    assert 'id="parent-new"' not in html
    incidents.confirm(outage, by=changer, parent=outage.parent)


# -- pages ---------------------------------------------------------------------------------------------------


def act(client: Client, incident: Incident, action: str, **data: Any) -> str:
    return client.post(f"{PAGES}{incident.pk}/act/", {"action": action, **data}, follow=True).content.decode()


def test_from_proposal_to_resolution_and_back(alice: Client, outage: Incident) -> None:
    assert "proposed" in alice.get(PAGES).content.decode()
    html = alice.get(f"{PAGES}{outage.pk}/").content.decode()
    assert "5 people have this problem" in html
    html = act(alice, outage, "confirm", parent=outage.parent_id)
    assert "Done: 4 reports have been merged." in html
    html = act(alice, outage, "resolve", comment="It works <b>again</b>.")
    assert "Resolved, with one public comment" in html
    html = act(alice, outage, "undo")
    assert "every report stands for itself again" in html


def test_it_is_as_old_as_its_first_report(alice: Client) -> None:
    ticket = TicketFactory(created_at=timezone.now() - timedelta(hours=3, minutes=1))
    incident = Incident.objects.create(parent=ticket)
    for member in (TicketFactory(), ticket):
        IncidentMember.objects.create(incident=incident, ticket=member)
    assert "first seen 3 hours ago" in alice.get(f"{PAGES}{incident.pk}/").content.decode()
    assert ">3 hours ago</time>" in alice.get(PAGES).content.decode()


def test_merging_reports_into_a_solved_one_says_so(alice: Client) -> None:
    solved, other = TicketFactory(status="resolved"), TicketFactory()
    incident = Incident.objects.create(parent=solved)
    for member in (solved, other):
        IncidentMember.objects.create(incident=incident, ticket=member)
    assert f"#{solved.pk}</a> is already resolved: reopen it" in act(
        alice, incident, "confirm", parent=solved.pk
    )


def test_merging_reports_into_a_duplicate_of_an_open_one_does_not(alice: Client) -> None:
    duplicate, other, end = TicketFactory(), TicketFactory(), TicketFactory()
    duplicate.merge_into(end, None)
    incident = Incident.objects.create(parent=duplicate)
    for member in (duplicate, other):
        IncidentMember.objects.create(incident=incident, ticket=member)
    html = act(alice, incident, "confirm", parent=duplicate.pk)
    assert "Done: 1 report has been merged." in html
    assert "reopen it" not in html


def test_incomplete_forms_are_told(alice: Client, outage: Incident) -> None:
    assert "Choose which ticket stays." in act(alice, outage, "confirm")
    assert "Choose which ticket stays." in act(alice, outage, "confirm", parent="x")
    assert "the form was incomplete" in act(alice, outage, "")
    act(alice, outage, "confirm", parent=outage.parent_id)
    assert "Write the comment" in act(alice, outage, "resolve", comment=" ")


def test_a_foreign_ticket_cannot_become_the_parent(alice: Client, outage: Incident) -> None:
    other = Ticket.objects.get(title="Parking permit")
    assert "Choose which ticket stays." in act(alice, outage, "confirm", parent=other.pk)


def test_the_ticket_leads_to_its_incident(alice: Client, outage: Incident) -> None:
    html = alice.get(f"/admin/tickets/ticket/{outage.parent_id}/change/").content.decode()
    assert f"{PAGES}{outage.pk}/" in html


def test_resolving_the_parent_on_its_page_offers_to_tell_everybody(
    alice: Client, agent: User, outage: Incident
) -> None:
    incidents.confirm(outage, by=agent, parent=outage.parent)
    parent = outage.parent
    assert parent is not None
    given = {
        "title": parent.title, "description": "", "reporter": parent.reporter_id, "category": "",
        "status": "resolved", "priority": "normal", "assignee": "", "resolution": "Done.", "comment": "",
        "seen_version": parent.version,
    }  # fmt: skip
    html = alice.post(f"/admin/tickets/ticket/{parent.pk}/change/", given, follow=True).content.decode()
    assert "A public comment reaches everybody" in html
    assert "Tell everybody" in alice.get(f"{PAGES}{outage.pk}/").content.decode()


def test_readers_only_read(client: Client, outage: Incident) -> None:
    client.force_login(UserFactory(is_staff=True, permissions=["view_ticket"]))
    assert 'name="action"' not in client.get(f"{PAGES}{outage.pk}/").content.decode()
    assert client.post(f"{PAGES}{outage.pk}/act/", {"action": "dismiss"}).status_code == 403


def test_others_do_not(client: Client, outage: Incident) -> None:
    assert client.get(PAGES).status_code == 302
    client.force_login(UserFactory(is_staff=True))
    assert client.get(PAGES).status_code == 403
    assert client.get(f"{PAGES}{outage.pk}/").status_code == 403


def test_unknown_and_empty(alice: Client) -> None:
    assert "No incidents." in alice.get(PAGES).content.decode()
    assert alice.get(f"{PAGES}999/").status_code == 404
    assert IncidentMember.objects.count() == 0

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET


@require_GET
def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@require_GET
def ticket_redirect(request: HttpRequest, ticket_id: int) -> HttpResponse:
    """The short address of a ticket that people pass on; the admin asks for the login and the permission."""
    return redirect("admin:tickets_ticket_change", ticket_id)

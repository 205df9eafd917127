"""Who may open the pages about tickets: the search and everything in the chat."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from tickets.permissions import may_view

View = Callable[..., HttpResponseBase]


def person(request: HttpRequest) -> User:
    """The person behind the request, or `PermissionDenied` unless staff who may see tickets."""
    if not may_view(request.user):
        raise PermissionDenied
    return cast(User, request.user)


def for_ticket_staff(view: View) -> View:
    """Sends strangers to the login page and answers 403 to people without the ticket permissions."""

    @login_required
    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        person(request)
        return view(request, *args, **kwargs)

    @wraps(view)
    def entry(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.headers.get("HX-Request") and not request.user.is_authenticated:
            return _login_of_the_whole_page(request)
        return checked(request, *args, **kwargs)

    return entry


def _login_of_the_whole_page(request: HttpRequest) -> HttpResponse:
    """A fragment cannot hold the login page: the browser goes there and comes back to where it was."""
    page = urlsplit(request.headers.get("HX-Current-URL", "")).path or "/"
    return HttpResponse(status=401, headers={"HX-Redirect": f"/login/?{urlencode({'next': page})}"})

from importlib.util import find_spec

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.generic import RedirectView

from helpdesk import metrics, single_sign_on, views
from tickets.api.views import NothingHere

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(url="/chat/"), name="home"),
    path("favicon.ico", views.favicon),
    path("healthz", views.healthz, name="healthz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("tickets/<int:ticket_id>/", views.ticket_redirect, name="ticket"),
    path("admin/login/", views.admin_login),
    path("admin/", admin.site.urls),
    path("api/v1/", include("helpdesk.api_urls")),
    re_path("^api/", NothingHere.as_view()),
    path("login/", single_sign_on.Login.as_view(), name="login"),
    path("login/sso/", single_sign_on.Begin.as_view(), name="oidc_authentication_init"),
    path("login/sso/callback/", single_sign_on.Callback.as_view(), name="oidc_authentication_callback"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("i18n/", include("django.conf.urls.i18n")),
]

# An app may be taken out of INSTALLED_APPS; its addresses go with it.
urlpatterns += [
    path("", include(f"{app}.urls"))
    for app in ("tickets", "retrieval", "assistant")
    if app in settings.INSTALLED_APPS and find_spec(f"{app}.urls")
]

handler400 = "helpdesk.views.bad_request"
handler500 = "helpdesk.views.server_error"

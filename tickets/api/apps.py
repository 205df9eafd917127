from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TicketsApiConfig(AppConfig):
    name = "tickets.api"
    label = "tickets_api"
    verbose_name = _("API")

from axes.apps import AppConfig as AxesConfig
from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class HelpdeskConfig(AppConfig):
    name = "helpdesk"
    verbose_name = _("Security")
    default = True

    def ready(self) -> None:
        from helpdesk import audit, checks  # noqa: F401  (checks register themselves)

        audit.connect()


class LoginLockConfig(AxesConfig):
    """django-axes under a name that says what it does."""

    verbose_name = _("Protection of the login")

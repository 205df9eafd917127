from django.apps import AppConfig


class HelpdeskConfig(AppConfig):
    name = "helpdesk"
    verbose_name = "Helpdesk"

    def ready(self) -> None:
        from helpdesk import audit, checks  # noqa: F401  (checks register themselves)

        audit.connect()

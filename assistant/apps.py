from django.apps import AppConfig


class AssistantConfig(AppConfig):
    name = "assistant"

    def ready(self) -> None:
        from assistant import health  # noqa: F401  (registers its checks)

"""Logging: structlog for our own lines and the standard library's; JSON in production, text for a trial."""

import logging.config
from typing import Any

import structlog


def logging_config(*, as_json: bool, level: str) -> dict[str, Any]:
    """The dictionary for `logging.config.dictConfig`."""
    shared = _shared_processors()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *_rendering(as_json),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Their own handlers would print every line twice; `middleware.request_log` logs requests.
            "django": {"handlers": [], "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            "uvicorn": {"handlers": [], "propagate": True, "level": "WARNING"},
            "uvicorn.access": {"handlers": [], "propagate": False},
            # The request lines of HTTP clients say nothing that our own lines do not say better.
            "httpx": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            "anthropic": {"level": "WARNING"},
        },
    }


def configure(config: dict[str, Any]) -> None:
    """Django calls this with settings.LOGGING."""
    logging.config.dictConfig(config)
    structlog.configure(
        processors=[*_shared_processors(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _shared_processors() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def _rendering(as_json: bool) -> list[Any]:
    if as_json:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # Tracebacks without the values of variables: messages and keys would be among them.
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)]

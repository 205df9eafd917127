"""The one exception of this package and its wire form."""

from __future__ import annotations

from collections.abc import Mapping

JsonObject = dict[str, object]

# docs: api/errors
STATUS_OF_TYPE: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class ApiError(Exception):
    """An error answer of the Messages API: HTTP status, error type, message and extra headers."""

    def __init__(
        self, status: int, type: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{status} {type}: {message}")
        self.status = status
        self.type = type
        self.message = message
        self.headers = dict(headers or {})

    def body(self, request_id: str) -> JsonObject:
        """The JSON object that carries this error, as an HTTP body and as an `error` event alike."""
        return {
            "type": "error",
            "error": {"type": self.type, "message": self.message},
            "request_id": request_id,
        }


def invalid(message: str) -> ApiError:
    """400 invalid_request_error, by far the most frequent refusal."""
    return ApiError(400, "invalid_request_error", message)

"""The one way out to a provider over HTTP: explicit timeouts, every failure as an EmbeddingError."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from weakref import finalize

import httpx
import orjson
from django.utils.translation import gettext as _

from .errors import EmbeddingError

CONNECT_SECONDS = 5.0
MOST_DETAIL = 200
LONGEST_RETRY_AFTER = 3600.0


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Wire:
    """POSTs JSON to one address. `key_setting` and `url_setting` name what the operator must mend."""

    client: httpx.Client
    url: str
    key_setting: str
    url_setting: str

    @classmethod
    def open(cls, url: str, key: str, seconds: float, *, key_setting: str, url_setting: str) -> Wire:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        client = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False)
        wire = cls(client, url, key_setting, url_setting)
        finalize(wire, client.close)
        return wire

    def post(self, body: Mapping[str, Any]) -> Any:
        """The decoded JSON of a 200; raises EmbeddingError for everything else."""
        try:
            response = self.client.post(self.url, json=body)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise self._misconfigured(_("{url_setting} is not a web address.")) from error
        except httpx.TimeoutException as error:
            raise _down(
                _("The embedding provider did not answer in time."), code="provider_timeout"
            ) from error
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise _down(
                _("The embedding provider cannot be reached."), code="provider_down", provider_wide=True
            ) from error
        except httpx.HTTPError as error:
            raise _down(_("The connection to the embedding provider broke."), code="provider_down") from error
        if response.status_code != 200:
            raise self._refused(response)
        try:
            # A batch of vectors has more than a hundred thousand numbers: the standard library's parser would
            # be the bottleneck of the worker.
            return orjson.loads(response.content)
        except ValueError as error:
            raise _down(
                _("The embedding provider answered with something that is not JSON."),
                code="provider_bad_answer",
            ) from error

    def _refused(self, response: httpx.Response) -> EmbeddingError:
        status = response.status_code
        if status in (401, 403):
            return self._misconfigured(
                _("The embedding provider refuses the key; check {key_setting}."), "key_refused"
            )
        if status == 402:
            return self._misconfigured(
                _("The embedding provider asks for payment; check its account."), "no_credit"
            )
        if status == 404 or 300 <= status < 400:
            return self._misconfigured(
                _("The embedding provider has no such address or model; check {url_setting}.")
            )
        if status == 429:
            return _down(
                _("The embedding provider limits the rate of requests."),
                code="rate_limited",
                provider_wide=True,
                retry_after=retry_after(response.headers.get("Retry-After", "")),
            )
        if status >= 500:
            return _down(
                _("The embedding provider is out of order (status {status}).").format(status=status),
                code="provider_down",
                retry_after=retry_after(response.headers.get("Retry-After", "")),
            )
        return EmbeddingError(
            _("The embedding provider rejects the text: {detail}").format(detail=self._detail(response)),
            code="text_rejected",
            permanent=True,
            too_long=status == 413 or _speaks_of_length(response.text),
        )

    def _misconfigured(self, sentence: str, code: str = "provider_misconfigured") -> EmbeddingError:
        message = sentence.format(key_setting=self.key_setting, url_setting=self.url_setting)
        return EmbeddingError(message, code=code, permanent=True, provider_wide=True)

    def _detail(self, response: httpx.Response) -> str:
        """The provider's own words, without the key should it echo it."""
        try:
            payload = response.json()
        except ValueError:
            return f"status {response.status_code}"
        detail = payload.get("detail") or payload.get("error") if isinstance(payload, dict) else None
        if isinstance(detail, dict):
            detail = detail.get("message")
        text = str(detail or f"status {response.status_code}")[:MOST_DETAIL]
        key = self.client.headers.get("Authorization", "").removeprefix("Bearer ")
        return text.replace(key, "…") if key else text


def retry_after(value: str) -> float | None:
    """Seconds from a Retry-After header in either of its forms, at most an hour; None if there is none."""
    value = value.strip()
    if value.isdigit():
        return min(float(value), LONGEST_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return min(max((at - datetime.now(UTC)).total_seconds(), 0.0), LONGEST_RETRY_AFTER)


def _down(
    message: str, *, code: str, provider_wide: bool = False, retry_after: float | None = None
) -> EmbeddingError:
    return EmbeddingError(message, code=code, provider_wide=provider_wide, retry_after=retry_after)


def _speaks_of_length(text: str) -> bool:
    lowered = text[:2000].lower()
    return "token" in lowered or "too long" in lowered or "maximum context" in lowered

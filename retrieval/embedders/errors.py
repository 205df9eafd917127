"""The two ways in which an embedding can be missing: switched off by configuration, or failed."""

from __future__ import annotations


class SearchOff(Exception):
    """No provider is configured. `code` is stable (`provider_off`, `no_key`); the text is safe to show."""

    def __init__(self, reason: str, code: str = "provider_off") -> None:
        super().__init__(reason)
        self.code = code


class EmbeddingError(Exception):
    """The provider gave no usable vector. The text is safe to show and never holds a key.

    `permanent`: the same request will fail again. `provider_wide`: certainly not the fault of one text, so
    that there is nothing to isolate. `too_long`: a text or the batch is over the provider's limit.
    `retry_after` is in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        permanent: bool = False,
        provider_wide: bool = False,
        too_long: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.permanent = permanent
        self.provider_wide = provider_wide
        self.too_long = too_long
        self.retry_after = retry_after

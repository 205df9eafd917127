"""What each model accepts. docs: about-claude/models/overview, models/sonnet-5-5/whats-new-sonnet-5-5."""

from __future__ import annotations

from dataclasses import dataclass

LOW_TO_HIGH = frozenset({"low", "medium", "high"})
ALL_EFFORTS = LOW_TO_HIGH | {"xhigh", "max"}


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Limits in tokens, and the settings that are a 400 on some models."""

    name: str
    context_window: int = 1_000_000
    max_output: int = 128_000
    thinking: frozenset[str] = frozenset({"adaptive"})
    efforts: frozenset[str] = ALL_EFFORTS
    prefill: bool = False
    forced_tools: bool = False
    binds_thinking: bool = True


_OPTIONAL_THINKING = frozenset({"adaptive", "disabled"})
_ANY_THINKING = frozenset({"adaptive", "enabled", "disabled"})
_MANUAL_THINKING = frozenset({"enabled", "disabled"})


def _generation_4_5(name: str, efforts: frozenset[str] = frozenset()) -> ModelSpec:
    return ModelSpec(
        name,
        context_window=200_000,
        max_output=64_000,
        thinking=_MANUAL_THINKING,
        efforts=efforts,
        prefill=True,
        forced_tools=True,
        binds_thinking=False,
    )


def _generation_4_6(name: str) -> ModelSpec:
    return ModelSpec(
        name,
        thinking=_ANY_THINKING,
        efforts=LOW_TO_HIGH | {"max"},
        forced_tools=True,
        binds_thinking=False,
    )


def _generation_5(name: str) -> ModelSpec:
    return ModelSpec(name, thinking=_OPTIONAL_THINKING, forced_tools=True, binds_thinking=False)


MODELS: dict[str, ModelSpec] = {
    spec.name: spec
    for spec in (
        ModelSpec("claude-sonnet-5-5", thinking=frozenset({"adaptive", "between_tools"})),
        ModelSpec("claude-haiku-5-5", thinking=_OPTIONAL_THINKING),
        ModelSpec("claude-opus-5-5"),
        ModelSpec("claude-fable-5-2"),
        ModelSpec("claude-fable-5-1"),
        ModelSpec("claude-mythos-5-2"),
        ModelSpec("claude-mythos-5-1"),
        _generation_5("claude-sonnet-5"),
        _generation_5("claude-opus-5"),
        _generation_5("claude-fable-5"),
        _generation_5("claude-mythos-5"),
        _generation_5("claude-opus-4-8"),
        _generation_5("claude-opus-4-7"),
        _generation_4_6("claude-opus-4-6"),
        _generation_4_6("claude-sonnet-4-6"),
        _generation_4_5("claude-opus-4-5", LOW_TO_HIGH),
        _generation_4_5("claude-opus-4-5-20251101", LOW_TO_HIGH),
        _generation_4_5("claude-sonnet-4-5"),
        _generation_4_5("claude-sonnet-4-5-20250929"),
        _generation_4_5("claude-haiku-4-5"),
        _generation_4_5("claude-haiku-4-5-20251001"),
    )
}

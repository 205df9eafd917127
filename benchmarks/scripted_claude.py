"""A Claude for load tests, as a process: the same text for everybody, at a fixed pace.

    python benchmarks/scripted_claude.py --port 8012 --first 0.4 --rate 40 --tokens 80

It validates requests like the tests' ScriptedClaude. With --search each turn begins with a call of
find_similar_tickets for the person's words. It prints one line when it listens, and stops on SIGTERM.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from assistant.messages_api.replies import Event, Pace, Reply, Text, ToolCall, play
from assistant.messages_api.server import MessagesApi
from assistant.messages_api.serving import serve
from assistant.messages_api.signatures import Ledger, content_of
from assistant.messages_api.validation import MessagesRequest


class FixedPace:
    """Waits `first` seconds, then says `count` words at `rate` a second."""

    def __init__(self, first: float, rate: float, count: int, search: bool) -> None:
        self.pace = Pace(first=first, token=1 / rate)
        self.text = " ".join(f"w{number:04d}" for number in range(count))
        self.search = search

    async def __call__(self, request: MessagesRequest, ledger: Ledger) -> AsyncIterator[Event]:
        async for event in play(self._reply(request), request, ledger, self.pace):
            yield event

    def _reply(self, request: MessagesRequest) -> Reply:
        last = content_of(request.messages[-1])
        texts = [str(block["text"]) for block in last if block["type"] == "text"]
        words = [text for text in texts if not text.startswith("<note>")]
        if self.search and words and request.body.get("tools"):
            return Reply((ToolCall("find_similar_tickets", {"query": words[-1]}),))
        return Reply((Text(self.text),))


def parsed_arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=8012)
    parser.add_argument("--first", type=float, default=0.4, help="seconds to the first token")
    parser.add_argument("--rate", type=float, default=40.0, help="tokens a second")
    parser.add_argument("--tokens", type=int, default=80, help="tokens of each answer")
    parser.add_argument("--search", action="store_true", help="begin each turn with a search")
    return parser.parse_args()


def main() -> None:
    options = parsed_arguments()
    model = FixedPace(options.first, options.rate, options.tokens, options.search)
    print(f"scripted Claude listens on http://127.0.0.1:{options.port}", flush=True)
    serve(MessagesApi(model), "127.0.0.1", options.port)


if __name__ == "__main__":
    main()

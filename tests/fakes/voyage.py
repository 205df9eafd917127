"""A strict stand-in for Voyage's embeddings API, over real HTTP. It rejects what the real one rejects.

    with VoyageServer() as server:
        server.script(Fault(status=429, headers={"Retry-After": "2"}))   # the next request only
        server.rules.append(lambda texts: Fault(status=500) if "poison" in " ".join(texts) else None)
        ...
        assert server.embedded["some text"] == 1

Its vectors depend on the text alone, so that two servers (and two processes) agree.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import numpy as np

KEY = "pa-test-key"
MODELS = {
    "voyage-4": 320_000,
    "voyage-4-lite": 1_000_000,
    "voyage-4-large": 120_000,
    "voyage-3.5": 320_000,
    "voyage-3.5-lite": 1_000_000,
}
FIELDS = {
    "input",
    "model",
    "input_type",
    "truncation",
    "output_dimension",
    "output_dtype",
    "encoding_format",
}
DIMENSIONS = (256, 512, 1024, 2048)
MOST_TEXTS = 1_000
WINDOW = 32_000
HANG = 3_600.0


@dataclass(frozen=True, slots=True)
class Fault:
    """How one request is answered instead; `change` edits a good answer, `hang` never answers."""

    status: int = 200
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    change: Callable[[dict[str, Any]], None] | None = None
    drop: bool = False
    hang: bool = False


Rule = Callable[[Sequence[str]], "Fault | None"]
Vector = Callable[[str, int], list[float]]


class Refusal(Exception):
    """A request that breaks the contract."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def tokens_of(text: str) -> int:
    """About what the real tokenizer counts: four bytes of Latin text to a token."""
    return len(text.encode("utf-8")) // 4 + 1


def vector_of(text: str, dimensions: int) -> list[float]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    values = np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)
    return [round(float(value), 5) for value in values / np.linalg.norm(values)]


class VoyageServer:
    """Listens on a free port of this machine from `start()` to `stop()`; a context manager does both."""

    def __init__(self, *, key: str = KEY, seconds: float = 0.0, vector: Vector = vector_of) -> None:
        self.key = key
        self.seconds = seconds
        self.vector = vector
        self.embedded: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.rules: list[Rule] = []
        self.most_at_once = 0
        self.released = threading.Event()
        self._at_once = 0
        self._script: deque[Fault] = deque()
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self._connections: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def script(self, *faults: Fault) -> None:
        """The next requests are answered like this, one after the other."""
        self._script.extend(faults)

    def start(self) -> VoyageServer:
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = _Server(("127.0.0.1", self._port), handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        """A later `start()` listens on the same port again."""
        self.released.set()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        with self._lock:
            for one in self._connections:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._connections.clear()

    def connected(self, one: socket.socket) -> None:
        with self._lock:
            self._connections.append(one)

    def __enter__(self) -> VoyageServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- one request ---------------------------------------------------------------------------------------

    def begin(self, body: dict[str, Any]) -> Fault | None:
        texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input") or []
        with self._lock:
            self.requests.append(body)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            if self._script:
                return self._script.popleft()
        return next((fault for rule in self.rules if (fault := rule(texts))), None)

    def end(self) -> None:
        with self._lock:
            self._at_once -= 1

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        with self._lock:
            self.embedded.update(texts)
        size = body.get("output_dimension") or 1024
        data = [
            {"object": "embedding", "embedding": self.vector(text, size), "index": index}
            for index, text in enumerate(texts)
        ]
        usage = {"total_tokens": sum(map(tokens_of, texts))}
        return {"object": "list", "data": data, "model": body["model"], "usage": usage}


def check(body: Any) -> None:
    """Raises Refusal for a body that the real API would not take."""
    if not isinstance(body, dict):
        raise Refusal(400, "The request body is not valid JSON.")
    unknown = sorted(body.keys() - FIELDS)
    if unknown:
        raise Refusal(400, f"Argument '{unknown[0]}' is not supported by our API.")
    if body.get("model") not in MODELS:
        raise Refusal(
            400, f"Model {body.get('model')} is not supported. Supported models are {sorted(MODELS)}."
        )
    if body.get("input_type") not in (None, "query", "document"):
        raise Refusal(400, "Argument 'input_type' must be null, 'query' or 'document'.")
    if not isinstance(body.get("truncation", True), bool):
        raise Refusal(400, "Argument 'truncation' must be a boolean.")
    if body.get("output_dimension") not in (None, *DIMENSIONS):
        raise Refusal(400, f"Argument 'output_dimension' must be one of {list(DIMENSIONS)}.")
    _check_input(body)


def _check_input(body: dict[str, Any]) -> None:
    texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input")
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise Refusal(400, "Argument 'input' must be a string or a non-empty list of strings.")
    if any(not text.strip() for text in texts):
        raise Refusal(400, "Input cannot contain empty strings or empty lists.")
    if len(texts) > MOST_TEXTS:
        raise Refusal(400, f"The batch size limit is {MOST_TEXTS}. Your batch size is {len(texts)}.")
    counts = [tokens_of(text) for text in texts]
    if not body.get("truncation", True) and max(counts) > WINDOW:
        raise Refusal(
            400,
            f"The example at index {counts.index(max(counts))} has too many tokens; the limit is {WINDOW}.",
        )
    allowed = MODELS[body["model"]]
    if sum(counts) > allowed:
        raise Refusal(
            400,
            f"The max allowed tokens per submitted batch is {allowed}. Your batch has {sum(counts)} tokens.",
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are killed in mid-request are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    fake: VoyageServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.fake.connected(self.connection)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = self._checked(raw)
        except Refusal as refusal:
            self._send(refusal.status, json.dumps({"detail": str(refusal)}))
            return
        fault = self.fake.begin(body)
        try:
            self._respond(body, fault)
        finally:
            self.fake.end()

    def _checked(self, raw: bytes) -> dict[str, Any]:
        if self.path != "/v1/embeddings":
            raise Refusal(404, "Not Found")
        if self.headers.get("Authorization") != f"Bearer {self.fake.key}":
            raise Refusal(401, "Provided API key is invalid.")
        try:
            body = json.loads(raw.decode("utf-8"))
        except ValueError:
            raise Refusal(400, "The request body is not valid JSON.") from None
        check(body)
        return dict(body)

    def _respond(self, body: dict[str, Any], fault: Fault | None) -> None:
        if fault and fault.drop:
            self.close_connection = True
            return
        if fault and fault.hang:
            self.fake.released.wait(HANG)
            self.close_connection = True
            return
        time.sleep(self.fake.seconds)
        if fault and (fault.status != 200 or fault.body is not None):
            self._send(fault.status, fault.body or json.dumps({"detail": "scripted fault"}), fault.headers)
            return
        answer = self.fake.answer(body)
        if fault and fault.change:
            fault.change(answer)
        self._send(200, json.dumps(answer))

    def _send(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        data = text.encode()
        self.send_response(status)
        kind = "application/json" if text.startswith(("{", "[")) else "text/html"
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

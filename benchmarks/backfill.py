"""How near does the worker come to what its provider allows, and in how much memory?

`python benchmarks/backfill.py [--tickets 20000] [--concurrency 4] [--milliseconds 200]`

The provider is a process of its own that answers each call after a fixed time. Ideal is what that time and
EMBED_CONCURRENCY allow.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import corpus
import numpy as np
from django.conf import settings

BATCH = 128


def provider(port: Any, dimensions: int, seconds: float) -> None:
    """Answers every text with one and the same vector, rendered once: the processors are the worker's."""
    values = np.random.default_rng(7).standard_normal(dimensions)
    vector = json.dumps([round(float(value), 9) for value in values / np.linalg.norm(values)])

    @cache
    def answer(texts: int) -> bytes:
        items = (f'{{"index": {n}, "embedding": {vector}}}' for n in range(texts))
        return f'{{"data": [{", ".join(items)}]}}'.encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            started = time.monotonic()
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = answer(len(body["input"]))
            time.sleep(max(0.0, seconds - (time.monotonic() - started)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.value = server.server_address[1]
    server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tickets", type=int, default=20_000)
    parser.add_argument("--dimensions", type=int, default=1024)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--milliseconds", type=float, default=200)
    options = parser.parse_args()
    port = multiprocessing.Value("i", 0)
    seconds = options.milliseconds / 1000
    process = multiprocessing.get_context("fork").Process(
        target=provider, args=(port, options.dimensions, seconds), daemon=True
    )
    process.start()
    while not port.value:
        time.sleep(0.01)
    with corpus.database():
        corpus.add_tickets(options.tickets)
        corpus.vacuum()
        settings.EMBEDDING_PROVIDER, settings.VOYAGE_API_KEY = "voyage", "bench"
        settings.VOYAGE_BASE_URL = f"http://127.0.0.1:{port.value}/v1"
        settings.VOYAGE_DIMENSIONS = options.dimensions
        row = measure(options.tickets, options.concurrency, seconds)
    process.terminate()
    print(corpus.table([row]))


def measure(tickets: int, concurrency: int, seconds: float) -> dict[str, Any]:
    from retrieval.embedders import get_embedder
    from retrieval.worker import Worker

    before = resource.getrusage(resource.RUSAGE_SELF)
    worker = Worker(get_embedder(), batch_size=BATCH, concurrency=concurrency)
    started = time.monotonic()
    while worker.tally.embedded < tickets and worker.step():
        pass
    took = time.monotonic() - started
    worker.finish()
    after = resource.getrusage(resource.RUSAGE_SELF)
    ideal = BATCH * concurrency / seconds
    return {
        "tickets": tickets,
        "per second": tickets / took,
        "ideal": ideal,
        "share": tickets / took / ideal,
        "CPU s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak MB": after.ru_maxrss / 1024,
        "processors": os.cpu_count(),
    }


if __name__ == "__main__":
    main()

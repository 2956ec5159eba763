"""All prefixes, request ids, log lines, health checks, lists of models and metrics work."""

import logging

import httpx
import pytest

from tests.api.requests import chat, read_error, sum_metric, wait_until
from tests.api.server_setup import MODEL

VLLM_NAMES = (
    "num_requests_running",
    "num_requests_waiting",
    "kv_cache_usage_perc",
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
    "time_to_first_token_seconds_count",
    "inter_token_latency_seconds_bucket",
    "e2e_request_latency_seconds_count",
    "request_queue_time_seconds_count",
    "request_prefill_time_seconds_count",
    "request_decode_time_seconds_count",
    "request_time_per_output_token_seconds_count",
    "request_params_n_count",
    "request_params_max_tokens_count",
    "prompt_tokens_total",
    "prompt_tokens_cached_total",
    "generation_tokens_total",
    "request_prompt_tokens_count",
    "request_generation_tokens_count",
    "request_success_total",
    "num_preemptions_total",
    "cache_config_info",
)


@pytest.mark.parametrize("prefix", ["/v1", "/v3", "/v3/v1"])
def test_the_prefixes_are_one_api(http: httpx.Client, prefix: str) -> None:
    answer = http.post(f"{prefix}/chat/completions", json=chat("Hi")).json()
    assert answer["choices"][0]["message"]["content"] == "Hi"
    body = {"model": "parrot", "prompt": "a", "max_tokens": 1}
    assert http.post(f"{prefix}/completions", json=body).json()["choices"][0]["text"] == "a"
    assert http.get(f"{prefix}/models").json()["data"][0]["id"] == MODEL
    assert http.get(f"{prefix}/models/{MODEL}").json()["id"] == MODEL


def test_models_list_their_capabilities(http: httpx.Client) -> None:
    listing = http.get("/v1/models").json()
    assert listing["object"] == "list"
    assert [model["id"] for model in listing["data"]] == [MODEL, "parrot"]
    assert http.get("/v1/models/org%2Fparrot").json() == listing["data"][0]
    assert listing["data"][0] == {
        "object": "model",
        "id": MODEL,
        "created": 1_700_000_000,
        "max_model_len": 4096,
        "context_length": 4096,
        "architecture": {
            "modality": "text+file->text",
            "input_modalities": ["text", "file"],
            "output_modalities": ["text"],
        },
        "capabilities": ["completion", "chat"],
        "owned_by": "ouzel",
        "root": None,
        "parent": None,
    }


def test_an_unknown_model_is_a_404(http: httpx.Client) -> None:
    response = http.get("/v1/models/org/owl")
    assert response.status_code == 404
    assert read_error(response)["code"] == "model_not_found"


def test_the_request_id_is_echoed_when_it_is_sane(http: httpx.Client) -> None:
    answered = http.get("/health", headers={"x-request-id": "abc-1.2"}).headers
    assert answered["x-request-id"] == answered["request-id"] == "abc-1.2"
    for strange in ("", "a b", "x" * 200, "a\tb"):
        made = http.get("/health", headers={"x-request-id": strange}).headers["x-request-id"]
        assert len(made) == 32
    assert http.get("/nope", headers={"x-request-id": "abc"}).headers["x-request-id"] == "abc"
    streamed = http.post(
        "/v1/chat/completions", json=chat("Hi", stream=True), headers={"x-request-id": "abc"}
    )
    assert streamed.headers["x-request-id"] == "abc"
    assert streamed.headers["x-accel-buffering"] == "no"
    assert streamed.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/health", None, 200),
        ("HEAD", "/health", None, 200),
        ("GET", "/metrics", None, 200),
        ("GET", "/openapi.json", None, 200),
        ("GET", "/v1/models/owl", None, 404),
        ("DELETE", "/v1/models", None, 405),
        ("OPTIONS", "/v1/completions", None, 204),
        ("POST", "/v1/chat/completions", [], 400),
        ("POST", "/v1/chat/completions", chat("ab<|fail|>"), 500),
        ("POST", "/v1/chat/completions", chat("ab<|fail|>", stream=True), 200),
        (
            "POST",
            "/v1/completions",
            {"model": "parrot", "prompt": "a", "max_tokens": 2, "stream": True},
            200,
        ),
    ],
)
def test_every_answer_has_the_request_id_once(
    http: httpx.Client, method: str, path: str, body: object, status: int
) -> None:
    response = http.request(method, path, json=body, headers={"x-request-id": "mine"})
    assert response.status_code == status
    assert response.headers.get_list("x-request-id") == ["mine"]


def test_a_request_is_logged_in_one_line_without_its_text(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    http.post("/v1/chat/completions", json=chat("secret", max_tokens=3))
    http.get("/nope%0Aline")
    wait_until(lambda: "/nope" in caplog.text)  # a line is written after its response
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == "ouzel.api.http.request_log"
    ][-2:]
    figures = "prompt_tokens=25 completion_tokens=3"
    assert lines[0].startswith(f"POST /v1/chat/completions 200 model={MODEL} {figures} ttft_s=")
    assert lines[0].endswith(" finish=length client=127.0.0.1")
    assert lines[1].startswith("GET /nope%0Aline 404 ")
    assert "secret" not in caplog.text


def test_ignored_fields_are_named_in_one_line(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    assert http.post("/v1/chat/completions", json=chat("Hi", zeal=1, fervour=2)).status_code == 200
    assert [
        record.getMessage() for record in caplog.records if record.name == "ouzel.wire.decode"
    ] == ["ignored fields: 'fervour', 'zeal'"]


def test_health_is_ok(http: httpx.Client) -> None:
    response = http.get("/health")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("fields", "num_generated", "reason"),
    [
        ({}, 4, "stop"),
        ({"stop": "i"}, 2, "stop"),
        ({"stop": "i", "n": 2}, 4, "stop"),
        ({"max_tokens": 1}, 1, "length"),
    ],
)
def test_metrics_grow_under_our_names_and_those_of_vllm(
    http: httpx.Client, fields: dict[str, object], num_generated: int, reason: str
) -> None:
    def exposition() -> str:
        return http.get("/metrics").text

    def growth(stem: str) -> float:
        return sum_metric(exposition(), f"vllm:{stem}") - sum_metric(before, f"vllm:{stem}")

    before = exposition()
    http.post("/v1/chat/completions", json=chat("Hi!", **fields))
    # after a stop string the engine ends the request one step later
    wait_until(lambda: growth("e2e_request_latency_seconds_count") == 1)

    after = exposition()
    for stem in VLLM_NAMES:
        assert sum_metric(after, f"vllm:{stem}") == sum_metric(after, f"ouzel_{stem}")
    assert [stem for stem in VLLM_NAMES if stem.endswith("_count") and growth(stem) != 1] == []
    assert (
        growth("generation_tokens_total")
        == growth("request_generation_tokens_sum")
        == num_generated
    )
    assert growth("prompt_tokens_total") == growth("request_prompt_tokens_sum") == 22
    assert growth("request_success_total") == fields.get("n", 1)
    assert (
        f'vllm:request_success_total{{engine="0",finished_reason="{reason}",model_name="{MODEL}"}}'
        in after
    )

"""A running server lists, uses, loads and unloads adapters, and has them after its engine died."""

import json
import os
import time
from pathlib import Path

import httpx
import numpy as np

from ouzel.demo import MODEL_DIRECTORY
from tests.backends.adapters import RandomAdapter
from tests.serve.running import serving

ADMIN = {"authorization": "Bearer sk-admin"}


def demo_adapter(seed: int, rank: int = 4, factor: float = 0.5) -> RandomAdapter:
    """Makes an adapter for the demo model's feed-forward layers that changes its answers."""
    config = json.loads((MODEL_DIRECTORY / "config.json").read_text())
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    random = np.random.default_rng(seed)
    halves = {
        f"model.layers.{layer}.mlp.gate_proj": (
            random.normal(0, factor, (rank, hidden)).astype(np.float32),
            random.normal(0, factor, (inner, rank)).astype(np.float32),
        )
        for layer in range(config["num_hidden_layers"])
    }
    return RandomAdapter(halves, {})


def names(http: httpx.Client) -> list[tuple[str, str | None]]:
    return [(model["id"], model["parent"]) for model in http.get("/v1/models").json()["data"]]


def answer(http: httpx.Client, model: str, **fields: object) -> str:
    body = {"model": model, "prompt": "12 + 5 =", "temperature": 0, "max_tokens": 8, **fields}
    response = http.post("/v1/completions", json=body)
    assert response.status_code == 200, response.text
    assert response.json()["model"] == model
    return str(response.json()["choices"][0]["text"])


def test_adapters_are_models_of_their_own(tmp_path: Path) -> None:
    one, two = (demo_adapter(seed).write(tmp_path / str(seed)) for seed in (1, 2))
    huge = demo_adapter(3, factor=1e19).write(tmp_path / "huge")
    options = (
        "--lora",
        f"one={one}",
        "--max-loras",
        "3",
        "--admin-api-key",
        "sk-admin",
        "--no-store",
    )
    with (
        serving(*options, cache_dir=tmp_path) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        base = "ouzel-demo"
        assert names(http) == [(base, None), ("one", base)]
        plain, adapted = answer(http, base), answer(http, "one")

        body = {"lora_name": "two", "lora_path": str(two)}
        assert http.post("/v1/load_lora_adapter", json=body).status_code == 401
        assert http.post("/v1/load_lora_adapter", json=body, headers=ADMIN).json()["parent"] == base
        other = answer(http, "two")
        assert len({plain, adapted, other}) == 3
        generated = http.post("/invocations", json={"inputs": "12 + 5 =", "adapters": "two"})
        assert generated.status_code == 200, generated.text
        by_model = http.post(f"/models/{base}/invoke?adapter=two", json={"inputs": "12 + 5 ="})
        assert by_model.json() == generated.json()

        broken = {"lora_name": "three", "lora_path": str(tmp_path)}
        refused = http.post("/v1/load_lora_adapter", json=broken, headers=ADMIN)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "lora_path")
        body_of_huge = {"lora_name": "huge", "lora_path": str(huge)}
        overflowing = http.post("/v1/load_lora_adapter", json=body_of_huge, headers=ADMIN)
        assert (overflowing.status_code, overflowing.json()["error"]["param"]) == (400, "lora_path")
        assert "adapter 'huge' makes the model overflow" in overflowing.json()["error"]["message"]
        assert answer(http, base) == plain
        taken = http.post("/v1/load_lora_adapter", json={**body, "lora_name": base}, headers=ADMIN)
        assert (
            taken.status_code,
            "must differ from the names of all served models" in taken.text,
        ) == (
            400,
            True,
        )
        named = http.post("/v1/load_lora_adapter", json={**body, "lora_name": "a,b"}, headers=ADMIN)
        assert (named.status_code, named.json()["error"]["param"]) == (400, "lora_name")

        engine = server.engine_process()
        engine.kill()
        # The server starts another engine as soon as it notices the death.
        while all(each.pid == engine.pid for each in server.engine_processes()):
            time.sleep(0.01)
        while http.get("/health").status_code != 200:
            time.sleep(0.05)
        assert (answer(http, base), answer(http, "one"), answer(http, "two")) == (
            plain,
            adapted,
            other,
        )

        assert http.post(
            "/v1/unload_lora_adapter", json={"lora_name": "one"}, headers=ADMIN
        ).json()["unloaded"]
        assert names(http) == [(base, None), ("two", base)]
        assert http.post("/v1/completions", json={"model": "one", "prompt": "x"}).status_code == 404
        assert answer(http, base) == plain
        running = http.get("/metrics").text
        assert 'ouzel_prompt_tokens_total{engine="0",model_name="two"}' in running
        assert 'ouzel_num_requests_running{engine="0",model_name="two"}' not in running


def test_adapters_of_a_model_that_is_not_in_memory_load_it(tmp_path: Path) -> None:
    adapter = demo_adapter(1).write(tmp_path / "1")
    options = ("--lora", f"poet={adapter}", "--idle-unload-s", "1000", "--no-store")
    environment = {**os.environ, "OUZEL_ADMIN_API_KEY": "sk-admin"}
    with (
        serving(*options, cache_dir=tmp_path, environment=environment) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        expected = answer(http, "poet")
        listed = [("ouzel-demo", None), ("poet", "ouzel-demo")]
        assert names(http) == listed
        http.post("/v1/models/unload", json={"name": "ouzel-demo"}, headers=ADMIN)
        assert http.get("/v1/models/poet").json()["state"] == "on_disk"
        assert names(http) == listed
        assert answer(http, "poet") == expected
        samples = [
            line.partition("}")[0]
            for line in http.get("/metrics").text.splitlines()
            if line.startswith("ouzel_requests_refused_total")
        ]
        assert len(samples) == len(set(samples)) == 2

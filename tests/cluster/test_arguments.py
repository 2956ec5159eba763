"""Tests the arguments of an application on Ray Serve, without Ray."""

import importlib
from pathlib import Path
from typing import Any  # option values

import pytest
import yaml

from ouzel.cluster.arguments import check_store, read_arguments, replica_options
from ouzel.cluster.request_ids import OneRequestId
from ouzel.cluster.scaling import WaitingPolicy
from ouzel.config import StoreConfig
from ouzel.options.invalid_option import InvalidOption

ROOT = Path(__file__).parents[2]
POSTGRES = "postgresql://ouzel@db/ouzel"


def replica(values: dict[str, Any], environment: dict[str, str], num_cpus: float = 4.0) -> Any:
    return replica_options(values, environment, num_cpus=num_cpus, drain_timeout_s=30.0)


def test_texts_and_values_are_the_same() -> None:
    texts = {
        "num_replicas": "2",
        "max_num_seqs": "7",
        "store": "false",
        "served_model_name": "a, b",
    }
    values = {"num_replicas": 2, "max_num_seqs": 7, "store": False, "served_model_name": ["a", "b"]}
    for arguments in (texts, values):
        settings, kept, options = read_arguments(arguments)
        assert (settings.num_replicas, settings.most_replicas) == (2, 2)
        assert (options.engine.max_num_seqs, options.store.store) == (7, False)
        assert options.model.served_model_name == ("a", "b")
        assert "num_replicas" not in kept


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"port": 80}, "port: must not be set on Ray Serve: Ray Serve listens"),
        ({"ssl_certfile": "x"}, "ssl_certfile: must not be set on Ray Serve"),
        ({"metrics_port": 1}, "metrics_port: must not be set on Ray Serve"),
        ({"replicas": 2}, "replicas: .* set num_replicas"),
        ({"api_key": "secret"}, "api_key: .* set OUZEL_API_KEY on the nodes"),
        ({"max_num_seq": 2}, "there is no argument max_num_seq; did you mean max_num_seqs"),
        ({"max_num_seqs": 0}, "--max-num-seqs: .* given 0"),
        ({"num_replicas": 0}, "num_replicas: .* given 0"),
        ({"num_cpus": "many"}, "num_cpus: .* given 'many'"),
        ({"routing": "random"}, "routing: .* given 'random'"),
        ({"target_waiting": 3}, "target_waiting: needs max_replicas"),
        (
            {"num_replicas": 2, "max_replicas": 3},
            "num_replicas: cannot be used with max_replicas",
        ),
        (
            {"min_replicas": 4, "max_replicas": 3},
            "min_replicas: must be <= max_replicas, 3, given 4",
        ),
        (
            {"num_replicas": 2, "store_url": "sqlite:///x"},
            "store_url: 2 replicas need a postgresql:// URL",
        ),
    ],
)
def test_impossible_arguments_are_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=f"^{message}"):
        read_arguments(arguments)


def test_the_file_in_deploy_has_allowed_arguments() -> None:
    [application] = yaml.safe_load((ROOT / "deploy" / "ray" / "serve.yaml").read_text())[
        "applications"
    ]
    settings, _, options = read_arguments(application["args"])
    [deployment] = application["deployments"]
    scaling = deployment["autoscaling_config"]
    assert settings.max_replicas == scaling["max_replicas"]
    assert options.limits.drain_timeout_s == 120
    module, _, name = scaling["policy"]["policy_function"].partition(":")
    getattr(importlib.import_module(module), name)(**scaling["policy"]["policy_kwargs"])


def test_no_message_shows_a_key() -> None:
    with pytest.raises(InvalidOption) as refused:
        read_arguments({"api_key": "secret-key"})
    assert "secret-key" not in str(refused.value)


def test_files_are_the_nodes_own(tmp_path: Path) -> None:
    arguments = {"api_key_file": str(tmp_path / "keys")}
    _, values, _ = read_arguments(arguments)
    (tmp_path / "keys").write_text("one\ntwo\n")
    assert replica(values, {}).server.api_key == ("one", "two")


def test_a_replica_computes_on_its_cpus_unless_told_otherwise() -> None:
    assert replica({}, {}).engine.num_threads == 4
    assert replica({}, {}, num_cpus=0.5).engine.num_threads == 1
    assert replica({}, {"OUZEL_NUM_THREADS": "2"}).engine.num_threads == 2
    assert replica({"num_threads": 3}, {"OUZEL_NUM_THREADS": "2"}).engine.num_threads == 3


def test_settings_of_the_node_are_checked_too() -> None:
    with pytest.raises(InvalidOption, match=r"^port: must not be set on Ray Serve"):
        replica({}, {"OUZEL_PORT": "9000"})
    with pytest.raises(InvalidOption, match=r"^drain_timeout_s: must be an argument"):
        replica({}, {"OUZEL_DRAIN_TIMEOUT_S": "31"})
    assert replica({}, {"OUZEL_API_KEY": "key"}).server.api_key == ("key",)


def test_replicas_share_a_store_or_have_none() -> None:
    for store, number in (
        (StoreConfig(), 1),
        (StoreConfig(store=False), 3),
        (StoreConfig(store_url=POSTGRES), 3),
    ):
        check_store(store, number)
    with pytest.raises(InvalidOption, match=r"^store_url: 3 replicas need"):
        check_store(StoreConfig(data_dir="/data"), 3)


class Context:
    """The context that Ray passes to an autoscaling policy."""

    def __init__(self, *loads: tuple[float, float], most: float = 8.0) -> None:
        names = ("waiting", "running")
        self.aggregated_metrics = {
            name: {number: load[place] for number, load in enumerate(loads)}
            for place, name in enumerate(names)
        }
        self.aggregated_metrics["most_running"] = dict.fromkeys(range(len(loads)), most)
        self.current_num_replicas = max(len(loads), 1)
        self.policy_state: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("context", "wanted"),
    [
        (Context((0, 0)), 1),
        (Context((2, 8)), 1),
        (Context((3, 8)), 2),
        # the queue would be short enough, but the running requests need them all
        (
            Context((1, 8), (1, 8), (2, 8)),
            3,
        ),
        (Context((0, 4), (0, 4)), 1),
        (Context((0, 5), (0, 4)), 2),
        (Context(), 1),  # no figures came
    ],
)
def test_there_are_as_many_replicas_as_waiting_and_running_requests_need(
    context: Context, wanted: int
) -> None:
    assert WaitingPolicy(target_waiting=2.0)(context)[0] == wanted


def test_running_sequences_count_if_a_target_is_given() -> None:
    assert WaitingPolicy(target_running=2.0)(Context((0, 7)))[0] == 4


@pytest.mark.parametrize(
    ("given", "left"), [(b"same", []), (b"other", [(b"x-request-id", b"same")])]
)
async def test_an_id_that_serve_will_add_is_left_out(given: bytes, left: list[Any]) -> None:
    sent = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"x-request-id", b"same")]}
        )

    async def send(message: Any) -> None:
        sent.append(message)

    send_once = OneRequestId(app)
    scope = {"type": "http", "headers": [(b"x-request-id", given)]}
    await send_once(scope, None, send)  # type: ignore[arg-type]
    assert sent[0]["headers"] == left

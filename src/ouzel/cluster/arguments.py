"""Reads the arguments of an application on Ray Serve: options of `ouzel serve`, and settings.

`serve run` gives texts, a file of `serve deploy` gives values. An option that has no meaning on Ray
is refused, from any source: the arguments, a node's environment or the file that `config` names.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal  # Any: values of options, checked by `converted`

import msgspec
from msgspec import Meta

from ouzel.config import StoreConfig
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options, read_options
from ouzel.options.records import RECORDS, list_options
from ouzel.terminal.suggestion import did_you_mean

_LISTENS = "Ray Serve listens, by its http_options"
_NO_TLS = "Ray Serve listens, without TLS: put a proxy with TLS before it"
_NO_PORT = "replicas have no ports of their own; with open_metrics /metrics needs no key"
_CONNECTIONS = "Ray Serve holds the connections, by RAY_SERVE_HTTP_… and RAY_SERVE_HAPROXY_…"
_LEAVES = "Ray Serve removes a replica from its list by itself, before it stops"
_ONE_DIRECTORY = "only one engine may use a directory, and replicas come and go"
_REFUSED = {
    "host": _LISTENS,
    "port": _LISTENS,
    "uds": _LISTENS,
    "ssl_certfile": _NO_TLS,
    "ssl_keyfile": _NO_TLS,
    "ssl_ca_certs": _NO_TLS,
    "ssl_client_auth": _NO_TLS,
    "metrics_port": _NO_PORT,
    "metrics_host": _NO_PORT,
    "max_connections": _CONNECTIONS,
    "header_timeout_s": _CONNECTIONS,
    "idle_timeout_s": _CONNECTIONS,
    "write_timeout_s": _CONNECTIONS,
    "drain_grace_s": _LEAVES,
    "prefix_cache_dir": _ONE_DIRECTORY,
    "prefix_cache_dir_gib": _ONE_DIRECTORY,
    "replicas": "each engine is a replica here: set num_replicas",
    "admin_api_key": "a model would be loaded on one replica only: name all models in `models`",
}
_SHOWN = "Ray shows arguments to every user of its dashboard: set {variable} on the nodes"
_MAY_BE_SHOWN = ("store_url",)  # a URL without a password is no secret
# Files of the nodes, which need not exist on the machine that calls `build`.
_OF_THE_NODES = ("config", "api_key_file", "allowed_local_media_path")


class ReplicaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sets the number of the replicas and the CPUs of each, for Ray."""

    num_replicas: Annotated[int, Meta(ge=1)] = 1
    # With max_replicas, the number of replicas follows the waiting requests.
    min_replicas: Annotated[int, Meta(ge=1)] = 1
    max_replicas: Annotated[int, Meta(ge=1)] | None = None
    target_waiting: Annotated[float, Meta(gt=0)] = 2.0
    target_running: Annotated[float, Meta(gt=0)] | None = None
    num_cpus: Annotated[float, Meta(gt=0)] = 1.0
    routing: Literal["prefix", "least_connections"] = "prefix"

    @property
    def most_replicas(self) -> int:
        return self.max_replicas or self.num_replicas


def read_arguments(arguments: Mapping[str, Any]) -> tuple[ReplicaSettings, dict[str, Any], Options]:
    """Returns the settings of the replicas, the values of the options, and the options here.

    The options of a replica may differ: its node may set more. Raises InvalidOption.
    """
    own = set(ReplicaSettings.__struct_fields__)
    options = {option.name: option for record in RECORDS for option in list_options(record)}
    unknown = sorted(set(map(str, arguments)) - own - set(options) - {"config"})
    if unknown:
        raise InvalidOption(
            f"there is no argument {', '.join(unknown)}{did_you_mean(unknown, own | set(options))}"
        )
    secrets = [
        option
        for option in options.values()
        if option.is_secret and option.name not in _MAY_BE_SHOWN
    ]
    _check(
        arguments,
        {option.name: _SHOWN.format(variable=option.variable) for option in secrets} | _REFUSED,
    )
    settings = _settings({name: value for name, value in arguments.items() if name in own})
    values = {name: value for name, value in arguments.items() if name not in own}
    values |= {
        name: _listed(value)
        for name, value in values.items()
        if name in options and options[name].is_list
    }
    seen_here = read_options(
        {name: value for name, value in values.items() if name not in _OF_THE_NODES}, {}
    )
    if values.get("store_url"):
        check_store(seen_here.store, settings.most_replicas)
    return settings, values, seen_here


def replica_options(
    values: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    num_cpus: float,
    drain_timeout_s: float,
) -> Options:
    """Returns the options of a replica, with the environment of its node and the CPUs from Ray.

    Raises InvalidOption, also if the node sets a longer drain than `drain_timeout_s`, for which Ray
    waits.
    """
    options = read_options(values, environment)
    if "num_threads" not in options.values and num_cpus > 0:
        options = read_options({**values, "num_threads": max(1, int(num_cpus))}, environment)
    _check(options.values, _REFUSED)
    if options.limits.drain_timeout_s > drain_timeout_s:
        raise InvalidOption(
            "drain_timeout_s: must be an argument of the application, as Ray has to wait as long, "
            f"given {options.limits.drain_timeout_s:g} on the node"
        )
    return options


def check_store(store: StoreConfig, num_replicas: int) -> None:
    """Raises InvalidOption if several replicas would each have a store of their own."""
    if store.store and num_replicas > 1 and not store.store_url.startswith("postgresql"):
        raise InvalidOption(
            f"store_url: {num_replicas} replicas need a postgresql:// URL for all of them, "
            "as an argument or as OUZEL_STORE_URL on the nodes; store=false stores no responses"
        )


def _listed(value: Any) -> Any:
    """Splits a text at commas, as in environment variables; other values stay."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _check(names: Iterable[str], refused: Mapping[str, str]) -> None:
    for name in names:
        if name in refused:
            raise InvalidOption(f"{name}: must not be set on Ray Serve: {refused[name]}")


def _settings(values: Mapping[str, Any]) -> ReplicaSettings:
    for name, value in values.items():
        try:
            msgspec.convert({name: value}, ReplicaSettings, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidOption(
                f"{name}: {str(error).partition(' - at ')[0]}, given {value!r}"
            ) from error
    settings = msgspec.convert(values, ReplicaSettings, strict=False)
    if settings.max_replicas is None:
        for name in ("min_replicas", "target_waiting", "target_running"):
            if name in values:
                raise InvalidOption(
                    f"{name}: needs max_replicas, given {values[name]!r} without it"
                )
    elif "num_replicas" in values:
        raise InvalidOption(
            f"num_replicas: cannot be used with max_replicas, given {settings.num_replicas}"
        )
    elif settings.min_replicas > settings.max_replicas:
        raise InvalidOption(
            f"min_replicas: must be <= max_replicas, {settings.max_replicas}, given "
            f"{settings.min_replicas}"
        )
    return settings

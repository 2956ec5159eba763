"""The arguments of an application on Ray Serve: options of `ouzel serve`, and a few about its replicas.

`serve run` gives texts, a file of `serve deploy` values. An option that means nothing there is refused, wherever it
was given: in the arguments, in a node's environment or in the file that `config` names.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal  # Any: option values are typed by `converted`

import msgspec
from msgspec import Meta

from ouzel.config import StoreConfig
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options, read_options
from ouzel.options.records import RECORDS, list_options
from ouzel.terminal.suggestion import did_you_mean

_LISTENS = "Ray Serve listens, as its http_options say"
_NO_TLS = "Ray Serve listens, without TLS: put a proxy with TLS before it"
_NO_PORT = "replicas have no ports of their own; open_metrics lets /metrics be read without a key"
_CONNECTIONS = "connections are those of Ray Serve, as RAY_SERVE_HTTP_… and RAY_SERVE_HAPROXY_… say"
_LEAVES = "Ray Serve takes a replica off its list by itself, before it stops"
_ONE_DIRECTORY = "a directory is one engine's, and replicas come and go"
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
    "replicas": "an engine is a replica here: num_replicas says how many",
    "admin_api_key": "a model would be loaded on one replica only: name all in models",
}
_SHOWN = "Ray shows arguments to all who see its dashboard: set {variable} on the nodes"
_MAY_BE_SHOWN = ("store_url",)  # as one without a password
_OF_THE_NODES = (
    "config",
    "api_key_file",
    "allowed_local_media_path",
)  # files that need not be where this is called


class ReplicaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Holds what is Ray's matter: how many replicas there are, and what each has."""

    num_replicas: Annotated[int, Meta(ge=1)] = 1
    # with max_replicas, there are as many as waiting requests need
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
    """Returns the settings of replicas, the options' values, and the options as far as nodes do not say more.

    Raises InvalidOption.
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
    """Returns a replica's, whose node may say more; it computes on the CPUs that Ray has given it.

    Ray waits for `drain_timeout_s` and not for longer. Raises InvalidOption.
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
    """Raises InvalidOption where replicas would keep responses each for itself."""
    if store.store and num_replicas > 1 and not store.store_url.startswith("postgresql"):
        raise InvalidOption(
            f"store_url: {num_replicas} replicas need a postgresql:// URL for all of them, "
            "as an argument or as OUZEL_STORE_URL on the nodes; store=false keeps no responses"
        )


def _listed(value: Any) -> Any:
    """Reads a list as environment variables have it."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _check(names: Iterable[str], refused: Mapping[str, str]) -> None:
    for name in names:
        if name in refused:
            raise InvalidOption(f"{name}: is no option on Ray Serve: {refused[name]}")


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
            f"num_replicas: must not be given beside max_replicas, given {settings.num_replicas}"
        )
    elif settings.min_replicas > settings.max_replicas:
        raise InvalidOption(
            f"min_replicas: must be <= max_replicas, {settings.max_replicas}, given {settings.min_replicas}"
        )
    return settings

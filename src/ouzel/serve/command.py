"""`ouzel serve` reads its options, takes the address, finds the model and serves."""

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import uvloop

from ouzel.model_store.model_directory import find_or_download
from ouzel.observability import configure_logging
from ouzel.options.command_line import read_command_line
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.model_settings import check_names
from ouzel.options.options import Options
from ouzel.options.vllm_options import check_vllm_model
from ouzel.serve.descriptors import with_max_connections
from ouzel.serve.listener import bound, bound_for_metrics
from ouzel.serve.model_options import check_with_model, check_without_model
from ouzel.serve.serve import serve
from ouzel.serve.traces import open_traces

logger = logging.getLogger(__name__)


def run(arguments: Sequence[str]) -> int:
    """Returns when the server has been told to stop. Raises OuzelError."""
    options = read_command_line(arguments)
    directive = options.directive
    if directive is not None and not directive.is_all:
        configure_logging(options.observability.log_level, options.observability.log_format)
        directive.run()
        sys.stdout.flush()
        options = read_command_line(arguments)  # it finds the files that the directive has written
    options = apply_logging(options)
    if directive is not None and directive.is_all:
        directive.run()
        return 0
    observability = options.observability
    has_metrics_port = observability.metrics_port is not None
    options = replace(
        options, limits=with_max_connections(options.limits, has_metrics_port=has_metrics_port)
    )
    for settings in options.all_models:
        check_without_model(settings.model)
    traces = open_traces(observability.otlp_traces_endpoint)
    with (
        bound(options.server) as listener,
        bound_for_metrics(observability, options.server.host) as watching,
    ):
        models = [
            find_or_download(settings.model) for settings in options.all_models
        ]  # may download for minutes
        pairs = [*zip(options.all_models, models, strict=True)]
        check_names(
            [name for settings, local in pairs for name in {*local.names_by(settings.model)}]
        )
        for settings, local in pairs:
            check_with_model(settings.model, settings.engine, local.directory)
            check_vllm_model(settings.vllm, local.directory)
        reread = partial(read_command_line, arguments) if options.has_file else None
        uvloop.run(serve(options, models, listener, watching, traces=traces, reread=reread))
    return 0


def apply_logging(options: Options) -> Options:
    """Logs as the options say, from now on, what is to be remarked on them. Raises InvalidOption."""
    configure_logging(options.observability.log_level, options.observability.log_format)
    for remark in options.remarks:
        logger.info(remark)
    for warning in options.warnings:
        logger.warning(warning)
    for problem in options.problems.values():
        raise InvalidOption(problem)
    return options

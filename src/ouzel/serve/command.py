"""`ouzel serve` reads its options, takes its address, opens its models and serves them."""

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import uvloop

from ouzel.observability import configure_logging
from ouzel.options.command_line import read_command_line
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.serve.descriptors import with_max_connections
from ouzel.serve.listener import bind_listeners
from ouzel.serve.open_models import open_models
from ouzel.serve.serve import serve
from ouzel.serve.traces import open_traces

logger = logging.getLogger(__name__)


def run(arguments: Sequence[str]) -> int:
    """Serves until a signal stops the server, and returns the exit status. Raises OuzelError."""
    options = read_command_line(arguments)
    directive = options.directive
    if directive is not None and not directive.is_all:
        configure_logging(options.observability.log_level, options.observability.log_format)
        directive.run()
        sys.stdout.flush()
        options = read_command_line(arguments)  # the directive has written files of options
    options = apply_logging(options)
    if directive is not None and directive.is_all:
        directive.run()
        return 0
    observability = options.observability
    has_metrics_port = observability.metrics_port is not None
    limits = with_max_connections(options.limits, has_metrics_port=has_metrics_port)
    options = replace(options, limits=limits)
    traces = open_traces(observability.otlp_traces_endpoint)
    with bind_listeners(options.server, observability) as (listener, metrics_listener):
        models = open_models(options)
        reread = partial(read_command_line, arguments) if options.has_file else None
        uvloop.run(serve(options, models, listener, metrics_listener, traces=traces, reread=reread))
    return 0


def apply_logging(options: Options) -> Options:
    """Configures the log, and logs the remarks and warnings of the options.

    Returns the same options. Raises InvalidOption if an entry of the models' file could not be
    read; the error describes the first such entry.
    """
    configure_logging(options.observability.log_level, options.observability.log_format)
    for remark in options.remarks:
        logger.info(remark)
    for warning in options.warnings:
        logger.warning(warning)
    for problem in options.problems.values():
        raise InvalidOption(problem)
    return options

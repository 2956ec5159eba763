"""The `ouzel` command."""

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import uvloop

import ouzel
from ouzel.cli.listening import bound
from ouzel.cli.model_directory import locate_model
from ouzel.cli.options import Options, add_options, read_options
from ouzel.cli.ovms_flags import split_ovms_flags
from ouzel.cli.serve import serve
from ouzel.errors import OuzelError
from ouzel.observability import configure_logging

logger = logging.getLogger(__name__)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ouzel", description=ouzel.__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"ouzel {ouzel.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve_parser = commands.add_parser(
        "serve",
        help="Serve a model over the OpenAI API.",
        description="Serve a model over the OpenAI API. Each flag is also an environment variable (--max-num-seqs is "
        "OUZEL_MAX_NUM_SEQS) and a key of the --config file (max_num_seqs).",
        allow_abbrev=False,
    )
    serve_parser.add_argument(
        "model",
        nargs="?",
        default=argparse.SUPPRESS,
        help="A local directory or a Hugging Face repo id (default: the bundled demo model).",
    )
    add_options(serve_parser)
    return parser


def read_command_line(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Options:
    """Raises InvalidOption."""
    theirs = split_ovms_flags(argv)
    arguments = theirs.values | vars(build_parser().parse_args(theirs.rest))
    del arguments["command"]
    options = read_options(arguments, environment)
    theirs.check_profile(options.server.profile)
    return replace(options, remarks=(*options.remarks, *theirs.remarks))


def main(argv: Sequence[str] | None = None) -> int:
    try:
        options = read_command_line(sys.argv[1:] if argv is None else argv)
        configure_logging(options.server.log_level)
        for remark in options.remarks:
            logger.info(remark)
        with bound(options.server) as listener:
            local = locate_model(options.model.model)  # may download for minutes: not in the event loop
            uvloop.run(serve(options, local, listener))
    except KeyboardInterrupt:
        return 130
    except OuzelError as error:
        sys.stderr.write(f"ouzel: {error}\n")
        return 1
    return 0

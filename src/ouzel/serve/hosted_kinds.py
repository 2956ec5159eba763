"""Makes the kinds of tools that this server runs, as the options ask for."""

from ouzel.options.options import Options
from ouzel.responses.hosted.kinds import HostedKind, HostedKinds


def make_hosted_kinds(options: Options) -> HostedKinds:
    """Returns the kinds of tools that are turned on, with hints for the others."""
    config = options.hosted_tools
    kinds: list[HostedKind] = []
    hints: dict[str, str] = {}
    return HostedKinds(
        kinds,
        hints,
        call_timeout_s=config.tool_call_timeout_s,
        max_output_chars=config.max_tool_output_chars,
        max_calls=config.max_tool_calls,
    )

"""Adds the MCP servers that the user of a command names to the options of its own model."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import msgspec

from ouzel.hosted_tools.mcp.configured import read_mcp_servers
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options


def add_mcp_servers(
    options: Options,
    urls: Mapping[str, str],
    names: Collection[str],
    headers: Mapping[str, Mapping[str, str]],
) -> Options:
    """Adds servers by label and URL; `names` are labels of servers that must be configured.

    `headers` has the headers of servers, by label.

    The user has named the servers, so their hosts may have any address. Raises InvalidOption.
    """
    if not urls and not names:
        return options
    config = options.hosted_tools
    try:
        configured = read_mcp_servers(config.mcp_servers)
    except ValueError as error:
        raise InvalidOption(f"mcp_servers: {error}") from None
    for name in names:
        if name not in configured:
            raise InvalidOption(
                "--mcp: must be a URL or the label of a server of mcp_servers "
                f"({', '.join(configured) or 'none'}), given {name!r}"
            )
    added = [
        {"label": label, "url": url, "headers": dict(headers.get(label, {}))}
        for label, url in urls.items()
    ]
    changed = msgspec.structs.replace(config, mcp_servers=(*config.mcp_servers, *added))
    return replace(options, hosted_tools=changed)

"""The options turn tools on that the server runs, and the list of models offers them."""

import pytest

from ouzel.options.command_line import read_command_line
from ouzel.responses.hosted.web_fetch import FETCH
from ouzel.serve.hosted_kinds import make_hosted_kinds
from ouzel.serve.named_mcp_servers import add_mcp_servers

WEB = {"type": "web_search"}
WIKI = {"type": "mcp", "server_label": "wiki"}


@pytest.mark.parametrize(
    ("arguments", "offers"),
    [
        ((), []),
        (("--allowed-mcp-hosts", "all"), []),
        (("--web-search-url", "http://127.0.0.1:1"), [WEB]),
        (
            ("--mcp-servers", "wiki=http://a/", "--web-search-url", "http://127.0.0.1:1"),
            [WEB, WIKI],
        ),
    ],
)
def test_each_tool_that_is_on_is_offered(
    arguments: tuple[str, ...], offers: list[dict[str, object]]
) -> None:
    options = read_command_line(arguments, {}, command="serve")
    kinds = make_hosted_kinds(options, None, None)
    assert kinds.offers == offers
    assert kinds.takes_mcp_urls == ("--allowed-mcp-hosts" in arguments)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ((), "--web-search-url or --web-search-provider"),
        (("--web-search-url", "http://127.0.0.1:1", "--web-fetch-hosts", ""), "--web-fetch-hosts"),
        (("--web-search-url", "http://127.0.0.1:1"), None),
    ],
)
def test_pages_are_fetched_where_searches_are_on(
    arguments: tuple[str, ...], hint: str | None
) -> None:
    options = read_command_line(arguments, {}, command="serve")
    kinds = make_hosted_kinds(options, None, None)
    assert FETCH not in kinds.types
    assert (FETCH in kinds.for_messages().types) == (hint is None)
    assert hint is None or hint in kinds.hints[FETCH]


def test_servers_that_a_command_names_join_those_of_the_options() -> None:
    options = read_command_line(("--mcp-servers", "wiki=http://a/"), {}, command="chat")
    added = add_mcp_servers(
        options, {"sums": "http://127.0.0.1:9/mcp"}, ["wiki"], {"sums": {"A": "b"}}
    )
    sums = {"label": "sums", "url": "http://127.0.0.1:9/mcp", "headers": {"A": "b"}}
    assert added.hosted_tools.mcp_servers == ("wiki=http://a/", sums)
    assert add_mcp_servers(options, {}, [], {}) is options

"""Runs the command /mcp, which lists the MCP servers of a chat with their tools."""

from collections.abc import Iterable, Mapping

from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat import PROBE, Chat
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.response_answer import ResponseAnswer
from ouzel.terminal_chat.response_body import ITEMS

ASK = "ask"
_MAX_DESCRIPTION = 80  # characters
# No endpoint only lists tools; a short answer lists them, and leaves its prompt in the cache.
_SHORT: Mapping[str, object] = {"max_output_tokens": 16, "tool_choice": "none"}
_Tools = list[dict[str, object]]


def mcp(chat: Chat, argument: str) -> None:
    """Lists the servers and their tools, or withdraws the user's allowances.

    Raises ChatError, and ApiFailure if the tools cannot be listed.
    """
    servers = chat.api.mcp_servers
    if not servers:
        raise ChatError("/mcp: the chat has no MCP server; start it with --mcp URL")
    if argument == ASK:
        servers.ask_again()
        chat.terminal.say("all tools of MCP servers wait for your answer before each call")
        return
    if argument:
        raise ChatError(f"/mcp: must stand alone, or before ask, given {harmless_line(argument)!r}")
    listed = _read_lists(chat.conversation.messages)
    if not listed.keys() >= set(servers.labels):
        listed |= _request_lists(chat)
    for label in servers.labels:
        where = servers.urls.get(label, "a server of mcp_servers")
        chat.terminal.say(f"{label}: {harmless_line(where.partition('?')[0])}")
        tools = listed.get(label, [])
        if not tools:
            chat.terminal.say("no tools are known")
            continue
        chat.terminal.show_pairs(
            {
                f"  {harmless_line(str(tool.get('name')))}": _describe(
                    tool, is_allowed=servers.is_allowed(label, str(tool.get("name")))
                )
                for tool in tools
            }
        )


def _request_lists(chat: Chat) -> dict[str, _Tools]:
    with chat.api.answer(chat.body() | {"messages": PROBE, **_SHORT}) as stream:
        for _ in stream:
            pass
    answer = stream.answer
    assert isinstance(answer, ResponseAnswer)
    return _read_lists([{ITEMS: answer.items}])


def _read_lists(messages: Iterable[Mapping[str, object]]) -> dict[str, _Tools]:
    """Returns the newest list of each server in the items of messages, by label."""
    lists: dict[str, _Tools] = {}
    for message in messages:
        items = message.get(ITEMS)
        for item in items if isinstance(items, list) else ():
            if item.get("type") == "mcp_list_tools" and isinstance(item.get("tools"), list):
                lists[str(item.get("server_label"))] = item["tools"]
    return lists


def _describe(tool: Mapping[str, object], *, is_allowed: bool) -> str:
    state = "runs without a question" if is_allowed else "asks"
    annotations = tool.get("annotations")
    if isinstance(annotations, dict) and annotations.get("readOnlyHint") is True:
        state += "; changes nothing, says the server"
    words = harmless_line(" ".join(str(tool.get("description") or "").split()))
    shown = words if len(words) <= _MAX_DESCRIPTION else f"{words[:_MAX_DESCRIPTION]}…"
    return f"[{state}] {shown}".rstrip()

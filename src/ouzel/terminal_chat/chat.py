"""A chat has a conversation and the user's settings, and requests answers of the server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ouzel.client.base import ApiFailure
from ouzel.terminal_chat.answer import Answer, ApprovalRequest, ToolCall
from ouzel.terminal_chat.answer_view import AnswerView
from ouzel.terminal_chat.chat_api import ChatApi
from ouzel.terminal_chat.chat_setup import build_fields
from ouzel.terminal_chat.commands.tool_file import run_call
from ouzel.terminal_chat.commands.tool_schema import Tool
from ouzel.terminal_chat.conversation import Conversation
from ouzel.terminal_chat.keyboard import on_interrupt
from ouzel.terminal_chat.picture import Picture
from ouzel.terminal_chat.settings import Settings
from ouzel.terminal_chat.terminal import Terminal

_MAX_ROUNDS = 25  # limit of rounds of tool calls, because a model may call tools for ever
_QUESTION = "Run it? [y]es, [n]o, [a]lways: "
_YES, _ALWAYS = ("y", "yes"), ("a", "always")
_REFUSED = "error: the user did not allow this call"
_STOPPED = "error: the user stopped this call"
PROBE = ({"role": "user", "content": "."},)


@dataclass(slots=True)
class Chat:
    """The state of a chat; commands change its fields."""

    api: ChatApi
    terminal: Terminal
    model: str
    conversation: Conversation = field(default_factory=Conversation)
    settings: Settings = field(default_factory=dict)
    pictures: list[Picture] = field(default_factory=list)  # images for the next message
    tools: Mapping[str, Tool] = field(default_factory=dict)
    allowed_tools: set[str] = field(default_factory=set)  # tools that run without a question
    response_format: dict[str, object] | None = None
    is_markdown: bool = True
    answers: list[Answer] = field(default_factory=list)  # answers of this run, for /stats
    unsent: str = ""  # the text of a message that failed, for /retry and /edit
    draft: str = ""  # text that the next input line begins with
    is_over: bool = False

    def send(self, text: str) -> None:
        """Sends a message and adds the message and the answer to the conversation.

        A failure is shown and leaves the conversation unchanged.
        """
        length = len(self.conversation)
        self.conversation.add_user(text, self.pictures)
        self.pictures, self.unsent = [], ""

        def undo() -> None:
            self.conversation.cut(length)
            self.unsent = text

        self._go_on_or(undo)

    def resend(self, at: int) -> None:
        """Requests a new answer to the message at the index `at`.

        The new answer replaces all later messages. A failure leaves the conversation unchanged.
        """
        before = self.conversation.exchanged
        self.conversation.cut(at + 1)
        self._go_on_or(lambda: self.conversation.replace(before))

    def check(self, change: Mapping[str, object]) -> bool:
        """Asks the server whether it accepts a request with these additional fields.

        Returns False if the server cannot tell. Raises ApiFailure if the server refuses them.
        """
        return self.api.check({**self._fields(), "messages": PROBE, **change})

    def body(self) -> dict[str, object]:
        """Returns the request for the next answer."""
        return {**self._fields(), "messages": self.conversation.messages}

    def _fields(self) -> dict[str, object]:
        return build_fields(self.model, self.settings, self.tools, self.response_format)

    def _go_on_or(self, undo: Callable[[], None]) -> None:
        """Calls `undo` if no answer comes; shows a failure, and raises an interruption again."""
        try:
            self._go_on()
        except ApiFailure as failure:
            undo()
            self.terminal.complain(str(failure))
        except KeyboardInterrupt:
            undo()
            raise

    def _go_on(self) -> None:
        """Requests answers and runs their calls until an answer has no calls. Raises ApiFailure."""
        for _ in range(_MAX_ROUNDS):
            answer = self._ask()
            if answer.is_stopped:
                self.conversation.withdraw_approvals(answer.approved_ids)
                if answer.is_empty:
                    self._take_back()
                    return
            self.conversation.add_answer(answer)
            if answer.is_stopped or not (answer.tool_calls or answer.approval_requests):
                return
            self._ask_for_approvals(answer.approval_requests)
            if not self._run_calls(answer.tool_calls):
                return
        self.terminal.complain(f"stopped after {_MAX_ROUNDS} rounds of tool calls")

    def _take_back(self) -> None:
        """Removes the last message if the user wrote it; the result of a tool stays."""
        if self.conversation.exchanged[-1]["role"] == "user":
            self.unsent = self.conversation.text_at(len(self.conversation) - 1)
            self.conversation.cut(len(self.conversation) - 1)

    def _ask(self) -> Answer:
        view = AnswerView(
            self.terminal.console, is_markdown=self.is_markdown and self.response_format is None
        )
        stream = self.api.answer(self.body())
        try:
            with stream, on_interrupt(stream.stop):
                for piece in stream:
                    view.show(piece)
        except ApiFailure:
            view.break_off()
            raise
        view.finish(stream.answer)
        self.answers.append(stream.answer)
        return stream.answer

    def _ask_for_approvals(self, requests: Sequence[ApprovalRequest]) -> None:
        """Asks whether the server may run the calls of MCP tools, which wait for it."""
        approvals: dict[str, bool] = {}
        allowed: set[tuple[str, str]] = set()  # "always" counts for later calls of this answer too
        for request in requests:
            tool = (request.server_label, request.tool)
            self.terminal.show_call(".".join(tool), request.arguments, is_whole=True)
            reply = "" if tool in allowed else self.terminal.ask(_QUESTION)
            if reply in _ALWAYS:
                allowed.add(tool)
                self.api.mcp_servers.allow(*tool)
            approvals[request.id] = tool in allowed or reply in _YES
        if approvals:
            self.conversation.add_approvals(approvals)

    def _run_calls(self, calls: Sequence[ToolCall]) -> bool:
        """Runs the calls; returns False after an interruption.

        Every call gets a result, because servers refuse a conversation without it.
        """
        is_interrupted = False
        for call in calls:
            result = _STOPPED if is_interrupted else self._run_call(call)
            is_interrupted = is_interrupted or result == _STOPPED
            self.conversation.add_tool_result(call.id, result)
        return not is_interrupted

    def _run_call(self, call: ToolCall) -> str:
        is_open = call.name in self.tools and call.name not in self.allowed_tools
        self.terminal.show_call(call.name, call.arguments, is_whole=is_open)
        if is_open:
            reply = self.terminal.ask(_QUESTION)
            if reply in _ALWAYS:
                self.allowed_tools.add(call.name)
            elif reply not in _YES:
                return _REFUSED
        try:
            with self.terminal.lent():
                result = run_call(self.tools, call)
        except KeyboardInterrupt:
            result = _STOPPED
        self.terminal.show_result(result)
        return result

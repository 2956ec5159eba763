"""The OpenAI Agents SDK and LangChain work with the demo model, over chats and responses, streamed.

In the conversations the model itself chooses the tools; its card names the requests that it answers
well. Tools with pydantic's schemas of nested and optional types are too hard for it: there the
request of the first turn forces a call. The temperature is 0.
"""

import functools
import json
import operator
from collections.abc import Iterator, Sequence
from typing import Any  # LangChain's agents and both frameworks' events

import openai
import pytest
from agents import (
    Agent,
    Model,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunResultStreaming,
    Tool,
    TResponseInputItem,
    function_tool,
)
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, SecretStr

from tests.serve.running import RunningServer, serving

pytestmark = pytest.mark.release("frameworks of agents, over HTTP and WebSockets")

UNGUESSED = {"num_assistant_tokens": 0}  # guessed tokens come several in a piece
WEATHER = '{"temperature": 21, "condition": "sunny"}'
QUESTIONS = ("What is the weather in Paris?", "What is 12 plus 30?")
CALLS = [("get_weather", {"city": "Paris"}), ("add", {"a": 12, "b": 30})]
ANSWERS = ["The temperature is 21 and the condition is sunny.", "The result is 42."]


class Guest(BaseModel):
    name: str = Field(max_length=8)
    age: int | None = Field(default=None, ge=0, le=120)


class Party(BaseModel):
    host: Guest
    guests: list[Guest] = Field(default_factory=list, max_length=2)
    hours: int = Field(default=3, ge=1, le=12)


def get_weather(city: str) -> str:
    """Get the current weather"""
    return WEATHER


def add(a: int, b: int) -> str:
    """Add two numbers"""
    return str(a + b)


def plan_party(party: Party, room: str | None = None) -> str:
    """Plans a party."""
    return json.dumps({"guests": len(party.guests), "host": party.host.name})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving("--precision", "f32", cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "LANGSMITH_TRACING",
        "LANGSMITH_TRACING_V2",
        "LANGCHAIN_TRACING",
        "LANGCHAIN_TRACING_V2",
    ):
        monkeypatch.setenv(name, "false")


# The OpenAI Agents SDK


@pytest.fixture(params=[OpenAIChatCompletionsModel, OpenAIResponsesModel])
def model(client: openai.AsyncOpenAI, request: pytest.FixtureRequest) -> Model:
    kind: type[OpenAIChatCompletionsModel | OpenAIResponsesModel] = request.param
    return kind(model="ouzel-demo", openai_client=client)


@pytest.fixture
async def client(server: RunningServer) -> Any:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        yield client


def agent(model: Model, tools: Sequence[Tool] = (), *, tool_choice: str | None = None) -> Agent:
    settings = ModelSettings(temperature=0, max_tokens=300, tool_choice=tool_choice)
    return Agent(name="demo", model=model, tools=list(tools), model_settings=settings)


async def run(agent: Agent, items: list[TResponseInputItem]) -> RunResultStreaming:
    result = Runner.run_streamed(agent, items, run_config=RunConfig(tracing_disabled=True))
    async for _ in result.stream_events():
        pass
    return result


def sdk_calls(items: Sequence[TResponseInputItem]) -> list[tuple[str, Any]]:
    given: Sequence[Any] = items
    return [
        (item["name"], json.loads(item["arguments"]))
        for item in given
        if item.get("type") == "function_call"
    ]


async def test_an_agent_of_the_sdk_uses_two_tools_in_one_conversation(model: Model) -> None:
    both = agent(model, [function_tool(get_weather), function_tool(add)])
    items: list[TResponseInputItem] = []
    said = []

    for question in QUESTIONS:
        result = await run(both, [*items, {"role": "user", "content": question}])
        said.append(result.final_output)
        items = result.to_input_list()

    assert sdk_calls(items) == CALLS
    assert said == ANSWERS


async def test_text_comes_to_an_agent_of_the_sdk_in_pieces(model: Model) -> None:
    unguessed = ModelSettings(extra_body=UNGUESSED)
    config = RunConfig(tracing_disabled=True, model_settings=unguessed)
    result = Runner.run_streamed(agent(model), "Hello!", run_config=config)

    events: list[Any] = [
        event.data async for event in result.stream_events() if event.type == "raw_response_event"
    ]
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]

    assert len(pieces) > 3
    assert "".join(pieces) == result.final_output


@pytest.mark.parametrize("strict_mode", [True, False])
async def test_the_sdk_can_give_tools_with_nested_and_optional_arguments(
    model: Model, strict_mode: bool
) -> None:
    tool = function_tool(plan_party, strict_mode=strict_mode)

    result = await run(
        agent(model, [tool], tool_choice="required"), [{"role": "user", "content": "Plan a party."}]
    )

    [(name, arguments), *_] = sdk_calls(result.to_input_list())
    assert name == "plan_party"
    party = Party.model_validate(arguments["party"])
    [output, *_] = [
        item.output for item in result.new_items if item.type == "tool_call_output_item"
    ]
    assert json.loads(output) == {"guests": len(party.guests), "host": party.host.name}


async def test_the_sdk_gets_outputs_of_a_type(model: Model) -> None:
    asker = agent(model).clone(output_type=Party)

    result = await run(asker, [{"role": "user", "content": "Plan a party."}])

    assert isinstance(result.final_output, Party)


# LangChain


@pytest.fixture(params=["chat completions", "responses"])
def chat(server: RunningServer, request: pytest.FixtureRequest) -> ChatOpenAI:
    return ChatOpenAI(
        model="ouzel-demo",
        base_url=server.url,
        api_key=SecretStr("none"),
        temperature=0,
        max_completion_tokens=300,
        max_retries=0,
        streaming=True,
        use_responses_api=request.param == "responses",
    )


def lang_tool(function: Any) -> BaseTool:
    return StructuredTool.from_function(function)


def lang_calls(messages: Sequence[BaseMessage]) -> list[tuple[str, Any]]:
    return [
        (call["name"], call["args"])
        for each in messages
        if isinstance(each, AIMessage)
        for call in each.tool_calls
    ]


def test_langchains_loop_uses_two_tools_in_one_conversation(chat: ChatOpenAI) -> None:
    loop: Any = create_agent(chat, [lang_tool(get_weather), lang_tool(add)])
    messages: list[BaseMessage] = []
    pieces: list[str] = []

    for question in QUESTIONS:
        pieces.append("")
        given = {"messages": [*messages, HumanMessage(question)]}
        for mode, event in loop.stream(given, stream_mode=["messages", "values"]):
            if mode == "values":
                messages = event["messages"]
            elif isinstance(event[0], AIMessageChunk):
                pieces[-1] += event[0].text

    assert lang_calls(messages) == CALLS
    assert (
        [each.text for each in messages if isinstance(each, AIMessage) and each.text]
        == pieces
        == ANSWERS
    )
    assert [each.content for each in messages if isinstance(each, ToolMessage)] == [WEATHER, "42"]


def test_langchain_can_give_tools_with_nested_and_optional_arguments(chat: ChatOpenAI) -> None:
    tool = lang_tool(plan_party)

    bound = chat.bind_tools([tool], tool_choice="plan_party", extra_body=UNGUESSED)
    pieces = list(bound.stream("Plan a party."))

    whole: Any = functools.reduce(operator.add, pieces)
    assert len(pieces) > 3
    [call] = whole.tool_calls
    assert json.loads(tool.invoke(call).content)["host"] == call["args"]["party"]["host"]["name"]


# The warnings are about LangChain's own `parsed` field.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_langchain_gets_outputs_of_a_type(chat: ChatOpenAI, method: Any) -> None:
    planner = chat.with_structured_output(Party, method=method)

    assert isinstance(planner.invoke("Plan a party."), Party)

"""The OpenAI Agents SDK and LangChain leave their history to the server.

They use the Responses API of the demo model, whole and streamed, at temperature 0. The agents of
`test_agent_frameworks` send the whole history again.
"""

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from typing import Any  # the frameworks' own options, and LangChain's agents

import openai
import pytest
from agents import (
    Agent,
    Model,
    ModelSettings,
    OpenAIConversationsSession,
    OpenAIResponsesCompactionSession,
    OpenAIResponsesModel,
    OpenAIResponsesWSModel,
    RunConfig,
    Runner,
    RunResult,
    RunResultStreaming,
    SQLiteSession,
    ToolOutputText,
    function_tool,
)
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI
from openai.types.shared import Reasoning
from pydantic import SecretStr

from tests.serve.running import RunningServer, serving
from tests.serve.test_agent_frameworks import (
    ANSWERS,
    CALLS,
    QUESTIONS,
    add,
    get_weather,
    lang_calls,
    lang_tool,
)

pytestmark = pytest.mark.release("frameworks of agents, over HTTP and WebSockets")

NAME_OF_OPENAI = "gpt-demo"  # the SDK compacts with models that are called like OpenAI's

Run = Callable[..., Any]  # arguments: an agent and its input; returns the complete result


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    names = ("--served-model-name", "ouzel-demo", "--served-model-name", NAME_OF_OPENAI)
    with serving(
        "--precision", "f32", *names, cache_dir=tmp_path_factory.mktemp("cache")
    ) as server:
        yield server


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(params=["whole", "streamed"])
def run(request: pytest.FixtureRequest) -> Run:
    return whole if request.param == "whole" else streamed


async def whole(agent: Agent, given: Any, **options: Any) -> RunResult:
    return await Runner.run(agent, given, run_config=RunConfig(tracing_disabled=True), **options)


async def streamed(agent: Agent, given: Any, **options: Any) -> RunResultStreaming:
    result = Runner.run_streamed(
        agent, given, run_config=RunConfig(tracing_disabled=True), **options
    )
    async for _ in result.stream_events():
        pass
    return result


def agent(
    model: Model, tools: Sequence[Callable[..., Any]] = (get_weather, add), **settings: Any
) -> Agent:
    chosen = ModelSettings(**{"temperature": 0, "max_tokens": 300, **settings})
    return Agent(
        name="demo",
        model=model,
        tools=[function_tool(tool) for tool in tools],
        model_settings=chosen,
    )


def over_http(client: openai.AsyncOpenAI, name: str = "ouzel-demo") -> OpenAIResponsesModel:
    return OpenAIResponsesModel(model=name, openai_client=client)


async def item_kinds(client: openai.AsyncOpenAI, conversation_id: str) -> list[str]:
    return [
        item.type async for item in client.conversations.items.list(conversation_id, order="asc")
    ]


# The OpenAI Agents SDK

TURN = ["message", "function_call", "function_call_output", "message"]


async def test_an_agent_continues_the_response_before(client: openai.AsyncOpenAI, run: Run) -> None:
    one, said = agent(over_http(client)), []
    previous: Any = None  # or an id

    for question in QUESTIONS:
        result = await run(
            one, question, previous_response_id=previous, auto_previous_response_id=True
        )
        previous = result.last_response_id
        said.append(result.final_output)

    assert said == ANSWERS
    assert result.context_wrapper.usage.input_tokens_details.cached_tokens > 0
    items = [item async for item in client.responses.input_items.list(previous, order="asc")]
    assert [item.type for item in items] == [*TURN, *TURN[:3]]


async def test_an_agent_talks_in_a_conversation(client: openai.AsyncOpenAI, run: Run) -> None:
    conversation = await client.conversations.create()

    results = [
        await run(agent(over_http(client)), each, conversation_id=conversation.id)
        for each in QUESTIONS
    ]

    assert [result.final_output for result in results] == ANSWERS
    assert await item_kinds(client, conversation.id) == TURN + TURN


async def test_a_session_of_the_sdk_is_a_conversation(client: openai.AsyncOpenAI, run: Run) -> None:
    session = OpenAIConversationsSession(openai_client=client)

    results = [await run(agent(over_http(client)), each, session=session) for each in QUESTIONS]

    assert [result.final_output for result in results] == ANSWERS
    assert await item_kinds(client, session.session_id) == TURN + TURN
    newest = await session.pop_item()
    assert newest is not None and newest not in await session.get_items()
    await session.add_items([{"role": "user", "content": f"{number}"} for number in range(41)])
    last: list[Any] = await session.get_items(limit=2)
    assert [item["content"][0]["text"] for item in last] == ["39", "40"]
    await session.clear_session()


async def test_a_conversation_keeps_reasoning(client: openai.AsyncOpenAI, run: Run) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    thinker = agent(over_http(client), reasoning=Reasoning(effort="low", summary="auto"))

    for question in QUESTIONS:
        result = await run(thinker, question, session=session)

    assert result.context_wrapper.usage.output_tokens_details.reasoning_tokens > 0
    assert (await item_kinds(client, session.session_id)).count("reasoning") == 4


@pytest.mark.parametrize("mode", ["previous_response_id", "input"])
async def test_the_sdk_compacts_a_session(client: openai.AsyncOpenAI, run: Run, mode: Any) -> None:
    one = agent(over_http(client))
    with closing(SQLiteSession("owls")) as kept:
        session = OpenAIResponsesCompactionSession(
            "owls",
            kept,
            client=client,
            model=NAME_OF_OPENAI,
            compaction_mode=mode,
            should_trigger_compaction=lambda context: (
                len(context["compaction_candidate_items"]) >= 6
            ),
        )

        first = [await run(one, each, session=session) for each in QUESTIONS]
        compacted = [item.get("type") for item in await session.get_items()]
        third = await run(one, QUESTIONS[0], session=session)

    assert [result.final_output for result in first] == ANSWERS
    assert compacted == ["message", "message", "compaction"]
    assert third.final_output


@pytest.mark.parametrize("way", ["resent", "continued", "in a conversation"])
async def test_an_agent_hands_over_to_another(
    client: openai.AsyncOpenAI, run: Run, way: str
) -> None:
    model = over_http(client)
    weather = agent(model, [get_weather]).clone(
        name="weather", handoff_description="Get the current weather"
    )
    first = agent(model, [], tool_choice="required").clone(handoffs=[weather])
    options: dict[str, dict[str, Any]] = {
        "resent": {},
        "continued": {"auto_previous_response_id": True},
        "in a conversation": {"session": OpenAIConversationsSession(openai_client=client)},
    }

    result = await run(first, QUESTIONS[0], **options[way])

    assert result.last_agent is weather
    assert result.final_output


async def test_an_agents_settings_reach_the_response(client: openai.AsyncOpenAI, run: Run) -> None:
    settings: dict[str, Any] = {
        "store": True,
        "metadata": {"of": "owls"},
        "truncation": "auto",
        "parallel_tool_calls": False,
        "tool_choice": "required",
        "top_p": 0.5,
        "top_logprobs": 1,
        "response_include": ["message.output_text.logprobs"],
        "reasoning": Reasoning(summary="auto"),
        "extra_body": {"seed": 3},
        "extra_args": {"user": "olga", "prompt_cache_key": "owls"},
    }

    result = await run(agent(over_http(client), **settings), QUESTIONS[0])

    first, last = result.raw_responses
    forced = await client.responses.retrieve(first.response_id)
    assert (forced.tool_choice, forced.parallel_tool_calls, forced.truncation) == (
        "required",
        False,
        "auto",
    )
    assert (forced.metadata, forced.top_p, forced.user) == ({"of": "owls"}, 0.5, "olga")
    assert (forced.reasoning, forced.prompt_cache_key) == (Reasoning(summary="auto"), "owls")
    assert all(part.logprobs for message in last.output for part in message.content)


async def test_a_tool_of_the_sdk_may_answer_in_parts(client: openai.AsyncOpenAI, run: Run) -> None:
    def get_weather(city: str) -> list[ToolOutputText]:
        """Get the current weather"""
        return [
            ToolOutputText(text='{"temperature": 21,'),
            ToolOutputText(text=' "condition": "sunny"}'),
        ]

    result = await run(agent(over_http(client), [get_weather, add]), QUESTIONS[0])

    assert result.final_output == ANSWERS[0]


@pytest.mark.parametrize("store", [True, False])
async def test_an_agent_talks_over_a_websocket(
    client: openai.AsyncOpenAI, run: Run, store: bool
) -> None:
    model = OpenAIResponsesWSModel(model="ouzel-demo", openai_client=client)
    one, said = agent(model, store=store), []
    previous: Any = None  # or an id
    try:
        for question in QUESTIONS:
            result = await run(
                one, question, previous_response_id=previous, auto_previous_response_id=True
            )
            previous = result.last_response_id
            said.append(result.final_output)
    finally:
        await model.close()

    assert said == ANSWERS
    if not store:
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(previous)


# LangChain


def chat(server: RunningServer, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="ouzel-demo",
        base_url=server.url,
        api_key=SecretStr("none"),
        temperature=0,
        max_completion_tokens=300,
        max_retries=0,
        use_responses_api=True,
        **options,
    )


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "LANGSMITH_TRACING",
        "LANGSMITH_TRACING_V2",
        "LANGCHAIN_TRACING",
        "LANGCHAIN_TRACING_V2",
    ):
        monkeypatch.setenv(name, "false")


@pytest.mark.parametrize("version", ["v0", "responses/v1", "v1"])
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("reasons", [False, True])
def test_langchain_continues_the_response_before(
    server: RunningServer, version: str, is_streamed: bool, reasons: bool
) -> None:
    options: dict[str, Any] = {"reasoning": {"effort": "low", "summary": "auto"}} if reasons else {}
    model = chat(
        server,
        output_version=version,
        streaming=is_streamed,
        use_previous_response_id=True,
        **options,
    )
    loop: Any = create_agent(model, [lang_tool(get_weather), lang_tool(add)])
    messages: list[BaseMessage] = []

    for question in QUESTIONS:
        messages = loop.invoke({"messages": [*messages, HumanMessage(question)]})["messages"]

    answers = [each for each in messages if isinstance(each, AIMessage)]
    with openai.OpenAI(base_url=server.url, api_key="none") as client:
        kept = [client.responses.retrieve(each.response_metadata["id"]) for each in answers]
    assert [each.previous_response_id for each in kept] == [None, *(each.id for each in kept[:-1])]
    if not reasons:  # when it does, the demo model goes astray in this
        assert lang_calls(messages) == CALLS
        assert [each.text for each in answers if each.text] == ANSWERS
    else:
        usage: Any = answers[0].usage_metadata
        assert usage["output_token_details"]["reasoning"]


@pytest.mark.parametrize("version", ["v0", "responses/v1", "v1"])
def test_langchain_sends_streamed_reasoning_back(server: RunningServer, version: str) -> None:
    model = chat(server, output_version=version, reasoning={"effort": "low", "summary": "auto"})
    question = HumanMessage("What is 12 plus 30?")
    answer: Any = functools.reduce(lambda one, other: one + other, model.stream([question]))

    reasoning = [
        block["reasoning"] for block in answer.content_blocks if block["type"] == "reasoning"
    ]
    again = model.invoke([question, answer, HumanMessage("What is 17 plus 25?")])

    assert "42" in "".join(reasoning)
    assert again.text

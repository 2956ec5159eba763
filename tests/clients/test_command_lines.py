"""Command lines that query, compare and measure models: llm, promptfoo and aiperf."""

import json

import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.clients.clients import NODE_22, Clients, node_directory, packages

pytestmark = [
    pytest.mark.serves,
    pytest.mark.release("command lines that ask, compare and measure models"),
]
CHATS = "/v1/chat/completions"
ALL_CLIENTS = "../how-to/clients"  # the page of clients without a page of their own
FUNCTION = """
def current_weather(city: str) -> str:
    "Get the current weather"
    return '{"temperature": 21, "condition": "sunny"}'
"""
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "sunny": {"type": "boolean"}},
    "required": ["city", "sunny"],
    "additionalProperties": False,
}
PROMPTFOO_CASES = """
prompts: ["{{question}}"]
tests:
  - vars: {question: "Hello!"}
    assert: [{type: equals, value: "Hello! How can I help you?"}]
"""


def test_llm_answers_fills_a_schema_and_calls_a_function(clients: Clients) -> None:
    program = packages("llm") / "bin" / "llm"
    environment = {"OPENAI_API_KEY": "none", "LLM_USER_PATH": str(clients.home)}
    models = clients.block(ALL_CLIENTS, "yaml", containing="model_id: ouzel")
    (clients.home / "extra-openai-models.yaml").write_text(models)
    (clients.home / "weather.py").write_text(FUNCTION)
    ask = (program, "-m", "ouzel", "-o", "temperature", "0")

    with clients.accepted("llm", CHATS):
        said = clients.run(*ask, "Hello!", environment=environment).stdout
        filled = clients.run(
            *ask, "--schema", json.dumps(SCHEMA), "Paris", environment=environment
        ).stdout
        question = ("--functions", "weather.py", "What is the weather in Paris?")
        called = clients.run(*ask, *question, environment=environment).stdout

    assert said == "Hello! How can I help you?\n"
    assert json.loads(filled).keys() == {"city", "sunny"}
    assert called == "The temperature is 21 and the condition is sunny.\n"


@pytest.mark.parametrize("provider", ["openai:chat:ouzel", "ollama:chat:ouzel"])
def test_promptfoo_finds_the_expected_answer(clients: Clients, provider: str) -> None:
    program = packages("promptfoo") / "node_modules" / ".bin" / "promptfoo"
    environment = {
        "PATH": f"{node_directory(NODE_22)}:{clients.variables({})['PATH']}",
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "OLLAMA_BASE_URL": clients.server.root,
    }
    settings = clients.block(ALL_CLIENTS, "yaml", containing="openai:chat:ouzel")
    if provider.startswith("ollama"):
        settings = f"providers: [{provider}]\n"
    (clients.home / "promptfooconfig.yaml").write_text(settings + PROMPTFOO_CASES)
    command = (program, "eval", "--no-cache", "--no-share", "--output", "results.json")

    with clients.accepted(
        f"promptfoo, {provider}", "/api/chat" if provider.startswith("ollama") else CHATS
    ):
        clients.run(*command, environment=environment)

    counts = json.loads((clients.home / "results.json").read_text())["results"]["stats"]
    assert (counts["successes"], counts["failures"], counts["errors"]) == (1, 0, 0)


def test_aiperf_measures_streamed_chats(clients: Clients) -> None:
    program = packages("aiperf") / "bin" / "aiperf"
    server = (
        "--model",
        "ouzel",
        "--url",
        clients.server.root,
        "--endpoint-type",
        "chat",
        "--streaming",
    )
    load = ("--tokenizer", str(MODEL_DIRECTORY), "--request-count", "6", "--concurrency", "2")
    lengths = ("--isl", "40", "--osl", "16", "--use-server-token-count", "--ui", "none")

    with clients.accepted("aiperf", CHATS):
        clients.run(program, "profile", *server, *load, *lengths)

    [path] = clients.home.rglob("profile_export_aiperf.json")
    figures = json.loads(path.read_text())
    assert figures["request_count"]["avg"] == 6
    assert figures["time_to_first_token"]["avg"] > 0
    assert not figures.get("error_summary")

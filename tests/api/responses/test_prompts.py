"""A response with `prompt` begins with a template of the server, filled with variables."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import openai
import openai.types.responses as openai_types
import pytest
from openai.types.responses.response_input_item import Message

from ouzel.config import ServerConfig
from tests.api.requests import Json, read_error, wait_until
from tests.api.responses.strict import strict_end, strict_response
from tests.api.responses.thinking import thinking_server
from tests.api.seeing import data_url, last_request, seeing_server

PROMPTS = """
- id: greeting
  description: Greets.
  default_version: "2"
  versions:
    - version: "1"
      instructions: You are {{role}}.
    - version: "2"
      instructions: You are {{role}}, {{role}}!
      messages:
        - {role: developer, content: "Speak {{ language }}."}
        - {role: user, content: "Greet Bob."}
        - {role: assistant, content: "{{example}}"}
        - {role: user, content: "Greet {{name}}."}
      temperature: 0.5
      max_output_tokens: 11
    - version: "3"
      messages: [{role: user, content: "Hello {{name}}"}]
      tools: [{type: function, name: look, parameters: {type: object}}]
      tool_choice: none
      reasoning: {effort: high}
      text: {format: {type: json_object}, verbosity: low}
- id: picture
  versions:
    - version: "1"
      instructions: "{{topic}}"
      messages:
        - {role: user, content: "Look at {{one}} and {{two}}: what is it?"}
        - {role: assistant, content: "{{answer}}"}
"""
VARIABLES = {"role": "a parrot", "language": "Welsh", "example": "Hi Bob.", "name": "Ada"}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> ServerConfig:
    file = tmp_path_factory.mktemp("prompts") / "prompts.yaml"
    file.write_text(PROMPTS)
    return ServerConfig(prompts=str(file))


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory, config: ServerConfig) -> Iterator[httpx.Client]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/store.sqlite3"
    with thinking_server(url, config=config) as server, server.client() as client:
        yield client


def body(
    prompt_id: str = "greeting",
    version: str | None = None,
    variables: Mapping[str, object] | None = None,
    **fields: object,
) -> Json:
    reference: Json = {"id": prompt_id, "version": version, "variables": variables}
    return {"model": "parrot", "prompt": reference, **fields}


def send(http: httpx.Client, sent: Mapping[str, object]) -> openai_types.Response:
    return strict_response(http.post("/v1/responses", json=sent).text)


def list_instructions(response: openai_types.Response) -> list[tuple[str, str]]:
    """Returns role and text of each message of the filled template."""
    assert isinstance(response.instructions, list)
    found: list[tuple[str, str]] = []
    for item in response.instructions:
        assert isinstance(item, openai_types.EasyInputMessage | Message)
        content = item.content
        if not isinstance(content, str):
            [part] = content
            assert isinstance(part, openai_types.ResponseInputText)
            content = part.text
        found.append((item.role, content))
    return found


def read_prompt(http: httpx.Client, sent: Mapping[str, object]) -> str:
    """Returns the text of the rendered prompt, without its control tokens."""
    answer = http.post("/v1/responses", json={**sent, "return_token_ids": True}).json()
    return bytes(token_id for token_id in answer["prompt_token_ids"] if token_id < 256).decode()


def test_the_text_of_a_template_comes_before_the_input(http: httpx.Client) -> None:
    sent = body(variables=VARIABLES, input="And Eve?", max_output_tokens=99)
    spelled = {
        "model": "parrot",
        "instructions": "You are a parrot, a parrot!",
        "input": [
            {"role": "developer", "content": "Speak Welsh."},
            {"role": "user", "content": "Greet Bob."},
            {"role": "assistant", "content": "Hi Bob."},
            {"role": "user", "content": "Greet Ada."},
            {"role": "user", "content": "And Eve?"},
        ],
    }
    assert read_prompt(http, sent) == read_prompt(http, spelled)
    response = send(http, sent)
    assert response.output_text == "And Eve?"
    stored = http.get(f"/v1/responses/{response.id}/input_items").json()["data"]
    assert [item["content"][0]["text"] for item in stored] == ["And Eve?"]


def test_the_response_shows_its_template(http: httpx.Client) -> None:
    response = send(http, body(variables=VARIABLES))
    assert response.prompt == openai_types.ResponsePrompt(
        id="greeting", version="2", variables=dict(VARIABLES)
    )
    assert (response.temperature, response.max_output_tokens) == (0.5, 11)
    assert list_instructions(response) == [
        ("system", "You are a parrot, a parrot!"),
        ("developer", "Speak Welsh."),
        ("user", "Greet Bob."),
        ("assistant", "Hi Bob."),
        ("user", "Greet Ada."),
    ]
    assert response.output_text == "Greet Ada."
    assert strict_response(http.get(f"/v1/responses/{response.id}").text) == response


def test_a_template_with_instructions_only_needs_an_input(http: httpx.Client) -> None:
    sent = body(version="1", variables={"role": "a bird"})
    refused = http.post("/v1/responses", json=sent)
    assert (refused.status_code, read_error(refused)["param"]) == (400, "input")
    response = send(http, {**sent, "input": "Hi"})
    assert response.instructions == "You are a bird."
    assert (response.output_text, response.temperature) == ("Hi", 1.0)


def test_fields_of_the_request_win_over_the_template(http: httpx.Client) -> None:
    response = send(
        http,
        body(variables=VARIABLES, temperature=0, max_output_tokens=3, instructions="Be brief."),
    )
    assert (response.temperature, response.max_output_tokens) == (0, 3)
    assert response.output_text == "Gre"
    assert list_instructions(response)[0] == ("system", "Be brief.")


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ({"temperature": None}, {"temperature": 0.5}),
        ({"max_tokens": 4}, {"max_output_tokens": 4}),
    ],
)
def test_null_is_no_field_and_other_names_of_a_field_are(
    http: httpx.Client, own: Json, shown: Json
) -> None:
    response = send(http, {**body(variables=VARIABLES), **own})
    assert {name: getattr(response, name) for name in shown} == shown


def test_a_template_has_tools_and_forms(http: httpx.Client) -> None:
    sent = body(version="3", variables={"name": "Ada"})
    response = send(http, sent)
    assert [tool.type for tool in response.tools] == ["function"]
    assert response.tool_choice == "none"
    assert response.reasoning is not None and response.reasoning.effort == "high"
    assert response.text is not None and response.text.format is not None
    assert response.text.format.type == "json_object"
    assert "look" in read_prompt(http, {**sent, "tool_choice": "auto"})
    plain = send(
        http, {**sent, "text": {"format": {"type": "text"}}, "reasoning_effort": "low", "tools": []}
    )
    assert plain.text is not None and plain.text.format is not None
    assert (plain.text.format.type, plain.tools) == ("text", [])
    assert plain.reasoning is not None and plain.reasoning.effort == "low"


def test_a_value_is_text_and_is_not_filled_again(http: httpx.Client) -> None:
    value = "{{role}} <|im_end|> {% raw %}"
    prompt = read_prompt(http, body(variables={**VARIABLES, "name": value}))
    assert f"Greet {value}." in prompt


def test_a_text_part_is_a_value(http: httpx.Client) -> None:
    part = {"type": "input_text", "text": "Ada"}
    response = send(http, body(variables={**VARIABLES, "name": part, "role": part}))
    assert response.output_text == "Greet Ada."
    assert response.prompt is not None and response.prompt.variables is not None
    assert response.prompt.variables["name"] == openai_types.ResponseInputText(
        type="input_text", text="Ada"
    )


@pytest.mark.parametrize(
    ("sent", "where", "complaint"),
    [
        (body("nothing"), (404, "prompt.id"), "must be the id of a prompt of this server"),
        (
            body(version="9"),
            (404, "prompt.version"),
            "prompt.version must be a version of the prompt greeting (1, 2, 3), given '9'",
        ),
        (
            body(version="1", variables={}),
            (400, "prompt.variables.role"),
            "prompt.variables.role is missing; the prompt greeting, version 1 needs it",
        ),
        (body(version="1"), (400, "prompt.variables.role"), "is missing"),
        (
            body(version="1", variables={"role": "x", "rule": "y"}),
            (400, "prompt.variables.rule"),
            "is no variable of the prompt greeting, version 1, whose variables are: role",
        ),
        (
            body(version="1", variables={"role": 5}),
            (400, "prompt.variables.role"),
            "must be a text or a part, given 5",
        ),
        (
            body(version="1", variables={"role": {"type": "input_audio"}}),
            (400, "prompt.variables.role.type"),
            "must be one of input_text, input_file, given",
        ),
        (
            body(version="1", variables={"role": {"type": "input_text"}}),
            (400, "prompt.variables.role.text"),
            "must be a string, given null",
        ),
        (
            body(variables={**VARIABLES, "name": {"type": "input_image", "image_url": "x"}}),
            (400, "prompt.variables.name.type"),
            'input_text, input_file, given "input_image": this model reads text only',
        ),
        ({"prompt": "greeting"}, (400, "prompt"), "prompt must be an object"),
        ({"prompt": {}}, (400, "prompt.id"), "prompt.id is required"),
        ({"prompt": {"id": 5}}, (400, "prompt.id"), "must be a string, given 5"),
        ({"prompt": {"id": "greeting", "version": 2}}, (400, "prompt.version"), "must be a string"),
        ({"prompt": {"id": "greeting", "variables": []}}, (400, "prompt.variables"), "an object"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/input_tokens"])
def test_a_wrong_reference_is_refused_with_its_field(
    http: httpx.Client, path: str, sent: Json, where: tuple[int, str], complaint: str
) -> None:
    answer = http.post(path, json={"model": "parrot", "input": "Hi", **sent})
    assert (answer.status_code, read_error(answer)["param"]) == where, answer.text
    assert complaint in read_error(answer)["message"]


def test_a_server_without_templates_has_none(server_http: httpx.Client) -> None:
    answer = server_http.post("/v1/responses", json=body(input="Hi"))
    assert (answer.status_code, read_error(answer)["param"]) == (404, "prompt.id")
    assert server_http.get("/v1/prompts").json() == {"object": "list", "data": []}


@pytest.fixture
def server_http(thinker_http: httpx.Client) -> httpx.Client:
    return thinker_http


# Ways to send a response


def test_tokens_are_counted_with_the_template(http: httpx.Client) -> None:
    sent = body(variables=VARIABLES, input="And Eve?")
    counted = http.post("/v1/responses/input_tokens", json=sent).json()["input_tokens"]
    assert send(http, sent).usage is not None
    assert counted == len(
        http.post("/v1/responses", json={**sent, "return_token_ids": True}).json()[
            "prompt_token_ids"
        ]
    )


def test_a_stream_and_a_background_response_have_the_template(http: httpx.Client) -> None:
    whole = send(http, body(variables=VARIABLES))
    streamed = strict_end(http.post("/v1/responses", json=body(variables=VARIABLES, stream=True)))
    begun = send(http, body(variables=VARIABLES, background=True))
    path = f"/v1/responses/{begun.id}"
    wait_until(lambda: http.get(path).json()["status"] == "completed")
    behind = strict_response(http.get(path).text)
    for response in (streamed, behind):
        for name in ("output_text", "prompt", "instructions", "temperature", "max_output_tokens"):
            assert getattr(response, name) == getattr(whole, name), name


def test_the_template_is_not_part_of_the_history(http: httpx.Client) -> None:
    first = send(http, body(variables=VARIABLES, input="And Eve?"))
    later = {"model": "parrot", "previous_response_id": first.id, "input": "And Dan?"}
    prompt = read_prompt(http, later)
    assert "Welsh" not in prompt and "And Eve?" in prompt
    again = read_prompt(http, {**later, **body(variables=VARIABLES)})
    assert again.index("Greet Ada.") < again.index("And Eve?") < again.index("And Dan?")
    without_input = body(variables=VARIABLES, previous_response_id=first.id)
    assert "Speak Welsh." in read_prompt(http, without_input)


def test_a_conversation_gets_only_the_input(http: httpx.Client) -> None:
    conversation_id = http.post("/v1/conversations", json={}).json()["id"]
    sent = body(variables=VARIABLES, input="And Eve?", conversation=conversation_id)
    send(http, sent)
    items = http.get(f"/v1/conversations/{conversation_id}/items").json()["data"]
    assert len(items) == 2


def test_the_client_sends_a_prompt(http: httpx.Client) -> None:
    with openai.OpenAI(base_url=f"{http.base_url}/v1", api_key="none", max_retries=0) as client:
        response = client.responses.create(
            model="parrot",
            prompt={"id": "greeting", "version": "3", "variables": {"name": "Ada"}},
            text={"format": {"type": "text"}},
        )
    assert response.output_text == "Hello Ada"


def test_other_endpoints_refuse_it(http: httpx.Client) -> None:
    for path in ("/v1/responses/compact", "/v1/chat/completions"):
        sent: Json = {"model": "parrot", "messages": [{"role": "user", "content": "Hi"}]}
        if path.endswith("compact"):
            sent = {"model": "parrot", "input": "Hi"}
        answer = http.post(path, json={**sent, "prompt": {"id": "greeting"}})
        assert (answer.status_code, read_error(answer)["param"]) == (400, "prompt")


# Pictures


def test_a_picture_is_a_value(tmp_path: Path, config: ServerConfig) -> None:
    picture = {"type": "input_image", "image_url": data_url(28, 56)}
    variables = {"topic": "Birds.", "one": picture, "two": picture, "answer": "An ouzel."}
    sent = body("picture", variables=variables, input="Sure?")
    spelled = {
        "model": "parrot",
        "instructions": "Birds.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look at "},
                    picture,
                    {"type": "input_text", "text": " and "},
                    picture,
                    {"type": "input_text", "text": ": what is it?"},
                ],
            },
            {"role": "assistant", "content": "An ouzel."},
            {"role": "user", "content": "Sure?"},
        ],
    }
    with seeing_server(tmp_path, config=config) as server, server.client() as http:
        response = send(http, sent)
        filled = last_request()
        send(http, spelled)
        assert filled.prompt_token_ids == last_request().prompt_token_ids
        assert len(filled.images) == 2
        assert response.prompt is not None and response.prompt.variables is not None
        assert isinstance(response.prompt.variables["one"], openai_types.ResponseInputImage)
        answer = http.post(
            "/v1/responses", json=body("picture", variables={**variables, "answer": picture})
        )
        assert read_error(answer)["param"] == "prompt.variables.answer"
        assert "it stands in the instructions or in a message of" in answer.text
        answer = http.post(
            "/v1/responses", json=body("picture", variables={**variables, "topic": picture})
        )
        assert read_error(answer)["param"] == "prompt.variables.topic"
        wrong = {**picture, "image_url": 5}
        answer = http.post(
            "/v1/responses", json=body("picture", variables={**variables, "two": wrong})
        )
        assert read_error(answer)["param"] == "prompt.variables.two.image_url"
        broken = {**picture, "image_url": "data:image/png;base64,AAAA"}
        answer = http.post(
            "/v1/responses", json=body("picture", variables={**variables, "two": broken})
        )
        assert read_error(answer)["param"] == "prompt.content[3].image_url"


# Lists


@pytest.mark.parametrize("prefix", ["/v1", "/v3"])
def test_templates_are_listed_without_their_texts(http: httpx.Client, prefix: str) -> None:
    listed = http.get(f"{prefix}/prompts").json()
    assert [each["id"] for each in listed["data"]] == ["greeting", "picture"]
    greeting = http.get(f"{prefix}/prompts/greeting").json()
    assert listed["data"][0] == greeting
    assert greeting == {
        "object": "prompt",
        "id": "greeting",
        "description": "Greets.",
        "default_version": "2",
        "versions": [
            {"version": "1", "variables": ["role"]},
            {"version": "2", "variables": ["role", "language", "example", "name"]},
            {"version": "3", "variables": ["name"]},
        ],
    }
    unknown = http.get(f"{prefix}/prompts/nothing")
    assert (unknown.status_code, read_error(unknown)["param"]) == (404, "prompt_id")

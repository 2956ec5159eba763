"""A field of another endpoint is honoured or refused, and null is the same as a missing field."""

import httpx
import msgspec
import pytest
from openai.types import completion_create_params as completion_params
from openai.types.chat import completion_create_params as chat_params

from ouzel.api.lmi.standard import Parameters
from ouzel.api.openai.completions import CompletionRequest
from ouzel.api.operations import DOCUMENTED
from ouzel.wire.aliases import ALIASES
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.hints import HINTS
from ouzel.wire.unsupported import NEUTRAL_VALUES
from tests.api.requests import chat, read_error
from tests.api.test_bad_input import MESSAGE

# their fields ask no model, or a model that speaks
OTHER_OBJECTS = (
    "/v1/audio/speech",
    "/v1/batches",
    "/v1/containers",
    "/v1/uploads",
    "/v1/vector_stores",
)
BODIES = list(
    dict.fromkeys(
        body
        for each in DOCUMENTED
        if each.words in ("openai", "lmi")
        and each.changing is None
        and not each.path.startswith(OTHER_OBJECTS)
        for body in each.bodies
    )
)


GENERATING_BODIES = list(
    dict.fromkeys(
        body
        for each in DOCUMENTED
        if each.chunks
        and each.changing is None
        and each.words == "openai"
        and not each.path.startswith(OTHER_OBJECTS)
        for body in each.bodies
    )
)


@pytest.mark.parametrize("body", GENERATING_BODIES)
@pytest.mark.parametrize("other", [*BODIES, Parameters])
def test_a_field_of_another_endpoint_is_honoured_or_refused(
    body: type[msgspec.Struct], other: type[msgspec.Struct]
) -> None:
    known = {*body.__struct_encode_fields__, *ALIASES, *HINTS, *NEUTRAL_VALUES}
    assert set(other.__struct_encode_fields__) <= known


def test_a_field_of_another_endpoint_is_told_the_field_to_use(http: httpx.Client) -> None:
    response = http.post(
        "/v1/completions", json={"model": "parrot", "prompt": "Hi", "messages": [MESSAGE]}
    )
    assert response.status_code == 400
    assert read_error(response)["param"] == "messages"
    assert "(use prompt, or /chat/completions)" in read_error(response)["message"]


@pytest.mark.parametrize(
    ("body", "params"),
    [
        (ChatCompletionRequest, chat_params.CompletionCreateParamsBase),
        (CompletionRequest, completion_params.CompletionCreateParamsBase),
    ],
)
def test_every_parameter_of_the_openai_client_is_honoured_or_refused(
    body: type[msgspec.Struct], params: type
) -> None:
    assert params.__annotations__.keys() <= {
        *body.__struct_encode_fields__,
        *HINTS,
        *NEUTRAL_VALUES,
    }


def test_null_is_not_given_in_any_field(http: httpx.Client) -> None:
    known = {*ChatCompletionRequest.__struct_encode_fields__, *ALIASES, *HINTS, *NEUTRAL_VALUES}
    optional = known - {"messages"}
    response = http.post("/v1/chat/completions", json=chat("Hi") | dict.fromkeys(optional))
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == "Hi"

"""Pictures in LMI's chat schema: as the engine gets them, and what is refused of them in LMI's words."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.lmi.answers import PREFIX, lines_of, refusal_of
from tests.api.requests import Json
from tests.api.seeing import data_url, last_prompt, last_request, seeing_server, sizes_seen

PATHS = ["/v1/chat/completions", "/invocations", "/predictions/org_parrot"]
LOOK: Json = {"type": "text", "text": "Look"}


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    directory = tmp_path_factory.mktemp("model")
    with seeing_server(directory, config=ServerConfig(profile="lmi")) as server, server.client() as http:
        yield http


def shown(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def saying(*parts: Json, **fields: object) -> Json:
    return {"messages": [{"role": "user", "content": [*parts]}], **fields}


@pytest.mark.parametrize("path", PATHS)
def test_pictures_stand_where_the_chat_has_them(seeing: httpx.Client, path: str) -> None:
    body = saying(LOOK, shown(data_url(56, 84)), shown(data_url(28, 56)))

    answer = seeing.post(path, json=body).json()

    assert "<|im_start|>user\nLook<picture of 6><picture of 2><|im_end|>\n" in last_prompt()
    assert sizes_seen() == [(56, 84), (28, 56)]
    assert answer["choices"][0]["message"]["content"] == "Look"
    assert answer["usage"]["prompt_tokens"] == len(last_request().prompt_token_ids)
    chunks = lines_of(seeing.post(path, json={**body, "stream": True}))
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks) == "Look"
    assert sizes_seen() == [(56, 84), (28, 56)]


@pytest.mark.parametrize("path", PATHS)
def test_what_cannot_be_seen_is_refused_by_its_place(seeing: httpx.Client, path: str) -> None:
    refused = {url: refusal_of(seeing.post(path, json=saying(LOOK, shown(url)))) for url in ("data:,hi", "data:", "")}

    place = f"{PREFIX}messages[0].content[1].image_url.url must be"
    assert refused["data:,hi"].startswith(f"{place} a picture")
    assert refused["data:"].startswith(f"{place} a data URL with a comma")
    assert refused[""].startswith(f"{place} a URL, a data URL, base64 or a path")


def test_a_model_of_texts_says_so(lmi: httpx.Client) -> None:
    text = refusal_of(lmi.post("/invocations", json=saying(LOOK, shown(data_url(28, 28)))))

    assert text.endswith('messages[0].content[1].type must be "text", given "image_url": this model reads text only')

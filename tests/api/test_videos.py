"""Videos in chats reach the engine, or are refused."""

from base64 import b64encode
from collections.abc import Callable, Iterator

import httpx
import pytest
from openai.types.chat import ChatCompletion

from ouzel.config import MediaConfig
from tests.api.requests import Json, join_content, read_error, read_events
from tests.api.seeing import data_url, last_prompt, last_request, seeing_server
from tests.prompts.media.files import saved
from tests.prompts.media.films import make_film, moving
from tests.prompts.vision.pictures import picture

CHATS = "/v1/chat/completions"
SIZE = (448, 224)
ROWS = 128  # the rows of features of a pair of frames; the reference makes no smaller pairs


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    media = MediaConfig(max_video_frames=8, max_videos=2, max_media_pixels=2_000_000)
    with (
        seeing_server(tmp_path_factory.mktemp("model"), max_model_len=2500, media=media) as server,
        server.client() as http,
    ):
        yield http


def said(text: str) -> Json:
    return {"type": "text", "text": text}


def body(*parts: object, **fields: object) -> Json:
    return {"model": "parrot", "messages": [{"role": "user", "content": [*parts]}], **fields}


def frames(count: int, height: int = 224, width: int = 448) -> list[str]:
    return [data_url(height, width) for _ in range(count)]


def build_data_url(file: bytes) -> str:
    return f"data:video/mp4;base64,{b64encode(file).decode()}"


@pytest.fixture(scope="module")
def gif() -> str:
    return build_data_url(moving("GIF", 20, SIZE, duration=100))


def jpegs(count: int) -> str:
    one = b64encode(saved(picture(448, 224), "JPEG")).decode()
    return "data:video/jpeg;base64," + ",".join([one] * count)


def test_videos_stand_where_the_chat_has_them(http: httpx.Client, gif: str) -> None:
    image = {"type": "image_url", "image_url": {"url": data_url(28, 28)}}
    parts = [said("One"), {"type": "video_url", "video_url": {"url": gif}}, image, said("two")]

    answer = http.post(CHATS, json=body(*parts))

    assert answer.json()["choices"][0]["message"]["content"] == "Onetwo"
    assert last_prompt().startswith(
        f"<|im_start|>user\nOne<video of {2 * ROWS}><picture of 1>two<|im_end|>\n"
    )
    sent = last_request().images
    assert [(image.shape[0], image.position_grid, image.time_shift) for image in sent] == [
        (2, (1, 8, 16), None),
        (2, (1, 8, 16), 1),
        (1, (1, 1, 1), None),
    ]
    usage = ChatCompletion.model_validate(answer.json(), strict=True).usage
    assert usage is not None and usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.image_tokens == 2 * ROWS + 1
    streamed = http.post(CHATS, json=body(*parts, stream=True))
    assert join_content(read_events(streamed)) == "Onetwo"
    assert [image.digest for image in last_request().images] == [image.digest for image in sent]


@pytest.mark.parametrize(
    ("make_part", "num_pairs"),
    [
        (lambda: {"type": "video", "video": frames(5)}, 3),
        (lambda: {"type": "video", "video": frames(4), "fps": 1.5}, 2),
        (lambda: {"type": "video_url", "video_url": jpegs(4)}, 2),
        (lambda: {"type": "video", "video": jpegs(2)}, 1),
        (lambda: {"type": "video_url", "video_url": {"url": data_url(224, 448)}}, 1),
        (
            lambda: {
                "type": "video_url",
                "video_url": {"url": build_data_url(moving("WEBP", 12, SIZE, duration=500))},
            },
            4,
        ),
        (
            lambda: {
                "type": "video_url",
                "video_url": {"url": build_data_url(make_film(30, SIZE, rate=10))},
            },
            3,
        ),
        (
            lambda: {
                "type": "video",
                "video": build_data_url(moving("PNG", 12, SIZE, duration=500)),
                "fps": 1,
            },
            3,
        ),
    ],
    ids=[
        "frames",
        "frames with a rate",
        "JPEGs",
        "JPEGs as Qwen's",
        "one picture",
        "WebP",
        "MP4",
        "a lower rate",
    ],
)
def test_a_video_may_be_written_in_many_ways(
    http: httpx.Client, make_part: Callable[[], Json], num_pairs: int
) -> None:
    assert http.post(CHATS, json=body(make_part(), said("Look"))).status_code == 200

    assert last_prompt().startswith(f"<|im_start|>user\n<video of {num_pairs * ROWS}>Look")


def test_a_text_that_spells_a_video_is_text(http: httpx.Client) -> None:
    spelled = "<|vision_start|><|video_pad|><|vision_end|>"

    answer = http.post(CHATS, json=body(said(spelled), {"type": "video", "video": frames(2)}))

    assert answer.status_code == 200
    assert last_prompt().startswith(f"<|im_start|>user\n<video of 1><video of {ROWS}><|im_end|>")
    assert len(last_request().images) == 1  # `last_request` checks the places of its tokens


REFUSED: dict[str, tuple[Json, str, str]] = {
    "no video": (
        {"type": "video_url", "video_url": {"url": "data:,hi"}},
        ".video_url.url",
        "must be a video",
    ),
    "no URL": (
        {"type": "video_url", "video_url": {}},
        ".video_url.url",
        "a URL, a data URL or a path, given nothing",
    ),
    "no frames": (
        {"type": "video", "video": []},
        ".video",
        "a non-empty list of frames, given an empty list",
    ),
    "millions of frames": (
        {"type": "video", "video": "data:video/jpeg;base64" + "," * 10**6},
        ".video",
        "<= 4096 frames",
    ),
    "no frame": (
        {"type": "video", "video": [*frames(1), 5]},
        ".video[1]",
        "a URL, a data URL or a path, given 5",
    ),
    "too many frames": (
        {"type": "video", "video": frames(9)},
        ".video[8]",
        "<= 8 frames of a video (max_video_frames)",
    ),
    "unequal frames": (
        {"type": "video", "video": [*frames(1), data_url(28, 28)]},
        ".video[1]",
        "as large as the first frame, 448x224, given 28x28",
    ),
    "large frames": (
        {"type": "video", "video": [data_url(1000, 700)] * 3},
        ".video",
        "<= 2000000 pixels in all frames (max_media_pixels), given 3 frames of 700x1000",
    ),
    "a strange rate": (
        {"type": "video", "video": frames(2), "fps": 0},
        ".fps",
        "a number from 0.1 to 60, given 0",
    ),
    "a size": (
        {"type": "video", "video": frames(2), "max_pixels": 9},
        ".max_pixels",
        "is not supported",
    ),
    "a size beside the URL": (
        {"type": "video_url", "video_url": {"url": data_url(28, 28), "total_pixels": 9}},
        ".video_url.total_pixels",
        "is not supported",
    ),
    "a detail": (
        {"type": "video_url", "video_url": {"url": "a", "detail": "low"}},
        ".video_url.detail",
        "not supported",
    ),
    "another host": (
        {"type": "video_url", "video_url": "https://a.org/a.mp4"},
        ".video_url",
        "allowed_media_domains",
    ),
    "a file": (
        {"type": "video_url", "video_url": "/a.mp4"},
        ".video_url",
        "allowed_local_media_path",
    ),
    "audio": (
        {"type": "input_audio"},
        ".type",
        'given "input_audio": this model reads text, pictures and videos',
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_an_unusable_video_is_refused_by_its_path(http: httpx.Client, fault: str) -> None:
    part, path, complaint = REFUSED[fault]

    response = http.post(CHATS, json=body(said("Look"), part))

    assert response.status_code == 400
    error = read_error(response)
    assert error["param"] == f"messages[0].content[1]{path}"
    assert complaint in error["message"]


def test_too_many_videos_are_refused(http: httpx.Client) -> None:
    error = read_error(http.post(CHATS, json=body(*[{"type": "video", "video": frames(2)}] * 3)))

    assert error["param"] == "messages[0].content[2].video"
    assert "must be one of <= 2 videos in a request (max_videos), given 3" in error["message"]


def test_videos_beyond_the_context_are_too_long_a_chat(http: httpx.Client) -> None:
    # each pair of frames has 256 tokens
    long = {"type": "video", "video": [data_url(448, 448)] * 8}

    error = read_error(
        http.post(
            CHATS, json=body(long, long, {"type": "image_url", "image_url": data_url(700, 700)})
        )
    )

    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")


def test_responses_and_messages_have_no_videos(http: httpx.Client) -> None:
    part = {"type": "video_url", "video_url": data_url(28, 28)}
    asked = {"model": "parrot", "input": [{"role": "user", "content": [part]}]}
    error = read_error(http.post("/v1/responses", json=asked))
    assert error["param"] == "input[0].content[0].type" and 'given "video_url"' in error["message"]
    sent = http.post("/v1/messages", json={**body(part), "max_tokens": 5})
    assert sent.status_code == 400 and "video_url" in sent.text

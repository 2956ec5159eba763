"""LMI's requests name an adapter in each place that LMI reads; the server has two adapters."""

from collections.abc import Iterator
from shutil import copytree

import httpx
import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.api.lmi.answers import PREFIX, read_lines, read_refusal
from tests.api.requests import Json
from tests.serve.running import serving
from tests.serve.test_adapters import demo_adapter

TEXT = "12 + 5 ="
BASE = "ouzel-demo"
HEADER = "X-Amzn-SageMaker-Adapter-Identifier"
ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
CHAT: Json = {"messages": [{"role": "user", "content": TEXT}], "temperature": 0, "max_tokens": 8}
STANDARD: Json = {"inputs": TEXT, "parameters": {"max_new_tokens": 8}}
PROMPT: Json = {"prompt": TEXT, "temperature": 0, "max_tokens": 8}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Writes a model directory in LMI's layout: its adapters are directories in `adapters`."""
    directory = copytree(MODEL_DIRECTORY, tmp_path_factory.mktemp("adapters") / "model")
    for seed, name in enumerate(("one", "two"), 1):
        demo_adapter(seed).write(directory / "adapters" / name)
    (directory / "serving.properties").write_text(
        f"option.enable_lora=true\noption.served_model_name={BASE}\n"
    )
    options = (str(directory), "--no-store", "--profile", "lmi")
    with (
        serving(*options, cache_dir=directory / "cache") as server,
        httpx.Client(base_url=server.root, timeout=None) as client,
    ):
        yield client


def texts(response: httpx.Response) -> list[str]:
    """Returns the text of an answer in any schema."""
    assert response.status_code == 200, response.text
    body = response.json()
    answers = body if isinstance(body, list) else [body]
    if "generated_text" in answers[0]:
        return [answer["generated_text"] for answer in answers]
    return [
        choice["message"]["content"] if "message" in choice else choice["text"]
        for choice in body["choices"]
    ]


@pytest.fixture(scope="module")
def expected(http: httpx.Client) -> dict[str, dict[str, str]]:
    """Returns the text of each schema's answer for each name; the path names the model."""
    bodies = {"chat": CHAT, "standard": STANDARD, "prompt": PROMPT}
    found = {
        schema: {
            name: texts(http.post(f"/predictions/{name}", json=body))[0]
            for name in (BASE, "one", "two")
        }
        for schema, body in bodies.items()
    }
    assert all(len(set(each.values())) == 3 for each in found.values()), found
    return found


@pytest.mark.parametrize(
    ("path", "headers", "fields"),
    [
        ("/invocations", {HEADER: "two"}, {}),
        ("/invocations", {"adapter": "two"}, {}),
        ("/invocations", {ATTRIBUTES: "adapter=two"}, {}),
        ("/invocations?adapter=two", {}, {}),
        (f"/predictions/{BASE}?adapter=two", {}, {}),
        ("/models/ouzel-demo/invoke", {HEADER: "two"}, {}),
        ("/invocations", {}, {"adapters": "two"}),
        ("/invocations", {}, {"adapters": ["two"]}),
        ("/invocations", {HEADER: "two"}, {"adapters": "one"}),
        ("/invocations?adapter=two", {}, {"adapters": ["one", "nobody"]}),
        ("/v1/chat/completions", {}, {"adapters": "two"}),
        ("/endpoints/ouzel-demo/invocations", {HEADER: "two"}, {}),
    ],
)
def test_an_adapter_is_named_where_lmi_reads_it(
    http: httpx.Client,
    expected: dict[str, dict[str, str]],
    path: str,
    headers: dict[str, str],
    fields: Json,
) -> None:
    for schema, body in (("chat", CHAT), ("standard", STANDARD), ("prompt", PROMPT)):
        assert texts(http.post(path, json=body | fields, headers=headers)) == [
            expected[schema]["two"]
        ], schema


@pytest.mark.parametrize(
    "fields", [{}, {"adapters": ""}, {"adapters": [""]}, {"adapters": []}, {"adapters": None}]
)
def test_an_empty_name_is_the_model_as_it_is(
    http: httpx.Client, expected: dict[str, dict[str, str]], fields: Json
) -> None:
    assert texts(http.post("/invocations", json=CHAT | fields)) == [expected["chat"][BASE]]
    assert texts(http.post("/invocations", json=STANDARD | fields)) == [expected["standard"][BASE]]


@pytest.mark.parametrize(
    "names", [["one", "two", ""], ["", "two", "one"], ["two", "two", "two"], ["", "", ""]]
)
def test_each_input_has_an_adapter_of_its_own(
    http: httpx.Client, expected: dict[str, dict[str, str]], names: list[str]
) -> None:
    body = STANDARD | {"inputs": [TEXT] * 3, "adapters": names}

    found = texts(http.post("/invocations", json=body))

    assert found == [expected["standard"][name or BASE] for name in names]


def test_one_name_is_for_all_inputs(
    http: httpx.Client, expected: dict[str, dict[str, str]]
) -> None:
    body = STANDARD | {"inputs": [TEXT] * 2}
    for headers, fields in (({}, {"adapters": "one"}), ({HEADER: "one"}, {"adapters": ["two"]})):
        found = texts(http.post("/invocations", json=body | fields, headers=headers))
        assert found == [expected["standard"]["one"]] * 2


def test_tgis_name_of_the_field_is_read(
    http: httpx.Client, expected: dict[str, dict[str, str]]
) -> None:
    parameters: Json = {"max_new_tokens": 8, "adapter_id": "one"}
    for fields in ({}, {"adapters": "one"}):
        found = texts(
            http.post("/invocations", json={"inputs": TEXT, "parameters": parameters, **fields})
        )
        assert found == [expected["standard"]["one"]]
    contrary = http.post(
        "/invocations", json={"inputs": TEXT, "parameters": parameters, "adapters": "two"}
    )
    assert read_refusal(contrary) == f'{PREFIX}adapter_id must be the name in adapters, given "one"'


def test_a_stream_has_its_adapter(http: httpx.Client, expected: dict[str, dict[str, str]]) -> None:
    for schema, body in (("standard", STANDARD), ("chat", CHAT)):
        lines = read_lines(
            http.post("/invocations", json=body | {"stream": True, "adapters": "one"})
        )
        if schema == "standard":
            assert lines[-1]["generated_text"] == expected[schema]["one"]
        else:
            pieces = [line["choices"][0]["delta"]["content"] for line in lines]
            assert "".join(pieces) == expected[schema]["one"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"adapters": "nobody"}, "Adapter nobody is not registered"),
        ({"inputs": [TEXT] * 2, "adapters": ["one", "nobody"]}, "Adapter nobody is not registered"),
        ({"inputs": [TEXT] * 2, "adapters": ["", BASE]}, f"Adapter {BASE} is not registered"),
        (
            {"inputs": [TEXT] * 2, "adapters": ["one"]},
            "Number of adapters is not equal to the number of inputs, given 1 and 2",
        ),
        (
            {"adapters": ["one", "two"]},
            "Number of adapters is not equal to the number of inputs, given 2 and 1",
        ),
        (
            {"adapters": {"name": "one"}},
            'adapters must be a string or a list of strings, given {"name":"one"}',
        ),
    ],
)
def test_wrong_adapters_are_a_424(http: httpx.Client, fields: Json, message: str) -> None:
    assert read_refusal(http.post("/invocations", json=STANDARD | fields)) == PREFIX + message

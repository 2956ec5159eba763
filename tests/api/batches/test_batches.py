"""Batches run over HTTP: the tests look at results, faults and ends."""

from typing import Any  # JSON

import httpx
import pytest

from tests.api.batches.setup import (
    CHATS,
    chat_line,
    create,
    download,
    jsonl,
    run_batch,
    upload,
    wait,
)


def test_each_line_gets_the_answer_of_its_endpoint(batch_http: httpx.Client) -> None:
    lines = [chat_line(f"id-{number}", f"word {number}", max_tokens=40) for number in range(300)]

    batch = run_batch(batch_http, lines, metadata={"who": "me"})

    assert batch["status"] == "completed"
    assert batch["request_counts"] == {"total": 300, "completed": 300, "failed": 0}
    assert batch["metadata"] == {"who": "me"}
    assert batch["error_file_id"] is None
    results = download(batch_http, batch["output_file_id"])
    assert [each["custom_id"] for each in results] == [line["custom_id"] for line in lines]
    for number, result in enumerate(results):
        alone = batch_http.post(CHATS, json=lines[number]["body"]).json() if number < 3 else None
        response = result["response"]
        assert (response["status_code"], result["error"]) == (200, None)
        text = response["body"]["choices"][0]["message"]["content"]
        assert f"word {number}" in text
        if alone is not None:
            assert text == alone["choices"][0]["message"]["content"]
    usages = [each["response"]["body"]["usage"] for each in results]
    assert batch["usage"]["output_tokens"] == sum(each["completion_tokens"] for each in usages)
    assert batch["usage"]["input_tokens"] == sum(each["prompt_tokens"] for each in usages)


def test_refused_lines_are_in_the_error_file(batch_http: httpx.Client) -> None:
    lines = [
        chat_line("good", "hello"),
        chat_line("bad", "hello", temperature=17),
        chat_line("stream", "hello", stream=True),
    ]

    batch = run_batch(batch_http, lines)

    assert batch["request_counts"] == {"total": 3, "completed": 1, "failed": 2}
    (good,) = download(batch_http, batch["output_file_id"])
    assert good["custom_id"] == "good"
    bad, stream = download(batch_http, batch["error_file_id"])
    assert (bad["custom_id"], bad["response"]["status_code"]) == ("bad", 400)
    assert "temperature" in bad["response"]["body"]["error"]["message"]
    assert stream["response"]["body"]["error"]["param"] == "stream"


def line_with(**fields: object) -> dict[str, Any]:
    return {**chat_line("x", "hello"), **fields}


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        ([], [("empty_file", None)]),
        ([chat_line("a", "x"), chat_line("a", "y")], [("duplicate_custom_id", 2)]),
        ([line_with(method="GET")], [("invalid_method", 1)]),
        ([chat_line("a", "x"), line_with(url="/v1/completions")], [("invalid_url", 2)]),
        ([line_with(body={"model": "nobody"})], [("model_not_found", 1)]),
        ([line_with(body={"messages": []})], [("missing_required_parameter", 1)]),
        ([line_with(body="text")], [("invalid_request", 1)]),
        ([{"method": "POST"}], [("missing_required_parameter", 1)]),
        ([line_with(custom_id=7)], [("invalid_type", 1)]),
        ([line_with(custom_id="a\0b")], [("invalid_custom_id", 1)]),
        (["no object", 7], [("invalid_json_line", 1), ("invalid_json_line", 2)]),
    ],
)
def test_a_wrong_file_fails_with_the_numbers_of_its_lines(
    batch_http: httpx.Client,
    lines: list[object],
    faults: list[tuple[str, int | None]],
) -> None:
    batch = run_batch(batch_http, lines)

    assert batch["status"] == "failed"
    assert [(each["code"], each["line"]) for each in batch["errors"]["data"]] == faults
    assert batch["output_file_id"] is None


def test_lines_with_aliases_of_one_model_are_one_batch(batch_http: httpx.Client) -> None:
    other = chat_line("b", "hello")
    other["body"]["model"] = "org/parrot"
    batch = run_batch(batch_http, [chat_line("a", "hello"), other])

    assert (batch["status"], batch["model"]) == ("completed", "org/parrot")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"completion_window": "24"}, "completion_window"),
        ({"completion_window": "169h"}, "completion_window"),
        ({"endpoint": "/v1/images"}, "endpoint"),
        ({"input_file_id": "file-none"}, "input_file_id"),
        ({"output_expires_after": {"anchor": "created_at", "seconds": 5}}, "output_expires_after"),
    ],
)
def test_wrong_fields_are_refused(
    batch_http: httpx.Client, fields: dict[str, object], param: str
) -> None:
    file_id = upload(batch_http, jsonl([chat_line("a", "x")]))
    body = {"input_file_id": file_id, "endpoint": CHATS, "completion_window": "24h", **fields}
    answer = batch_http.post("/v1/batches", json=body)

    assert answer.status_code == 400
    assert param in answer.json()["error"]["message"]


def test_a_file_with_another_purpose_is_no_input(batch_http: httpx.Client) -> None:
    file_id = upload(batch_http, b"{}", purpose="assistants")
    body = {"input_file_id": file_id, "endpoint": CHATS, "completion_window": "24h"}
    answer = batch_http.post("/v1/batches", json=body)
    assert answer.status_code == 400
    assert "purpose batch" in answer.json()["error"]["message"]


def test_a_cancelled_batch_keeps_the_results_so_far(batch_http: httpx.Client) -> None:
    lines = [chat_line(f"id-{number}", "x" * 300) for number in range(2000)]
    batch = create(batch_http, upload(batch_http, jsonl(lines)))
    wait(batch_http, batch["id"], lambda each: each["request_counts"]["completed"] > 5)

    cancelling = batch_http.post(f"/v1/batches/{batch['id']}/cancel").json()
    assert cancelling["status"] in ("cancelling", "cancelled")
    cancelled = wait(batch_http, batch["id"])
    assert cancelled["status"] == "cancelled"
    counts = cancelled["request_counts"]
    assert counts["total"] == 2000
    assert counts["completed"] + counts["failed"] == 2000
    output = download(batch_http, cancelled["output_file_id"])
    errors = download(batch_http, cancelled["error_file_id"])
    assert len(output) == counts["completed"]
    ids = [each["custom_id"] for each in (*output, *errors)]
    assert sorted(ids) == sorted(line["custom_id"] for line in lines)
    assert errors[-1]["error"]["code"] == "batch_cancelled"

    again = batch_http.post(f"/v1/batches/{batch['id']}/cancel")
    assert again.status_code == 200


def test_a_completed_batch_cannot_be_cancelled(batch_http: httpx.Client) -> None:
    batch = run_batch(batch_http, [chat_line("a", "hello")])
    answer = batch_http.post(f"/v1/batches/{batch['id']}/cancel")
    assert answer.status_code == 409
    assert "completed" in answer.json()["error"]["message"]


def test_unknown_batches_are_not_found(batch_http: httpx.Client) -> None:
    for method, path in (("GET", "/v1/batches/batch_x"), ("POST", "/v1/batches/batch_x/cancel")):
        answer = batch_http.request(method, path)
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "batch_not_found"


def test_lists_have_pages(batch_http: httpx.Client) -> None:
    ids = [
        create(batch_http, upload(batch_http, jsonl([chat_line("a", "hello")])))["id"]
        for _ in range(3)
    ]
    page = batch_http.get("/v1/batches", params={"limit": 2}).json()
    assert [each["id"] for each in page["data"]] == [ids[2], ids[1]]
    assert page["has_more"] is True
    assert page["last_id"] == ids[1]
    rest = batch_http.get("/v1/batches", params={"limit": 1, "after": ids[1]}).json()
    assert [each["id"] for each in rest["data"]] == [ids[0]]
    answer = batch_http.get("/v1/batches", params={"after": "batch_x"})
    assert answer.status_code == 400

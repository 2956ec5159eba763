"""Invokes an endpoint with boto3's sagemaker-runtime, whole and streamed; it raises on errors."""

import json
import sys

import boto3


def main(root: str) -> None:
    runtime = boto3.client(
        "sagemaker-runtime",
        endpoint_url=root,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
    )
    body = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 8, "do_sample": False}}
    answer = runtime.invoke_endpoint(
        EndpointName="ouzel", ContentType="application/json", Body=json.dumps(body)
    )
    text = json.load(answer["Body"])["generated_text"]
    assert text
    streamed = runtime.invoke_endpoint_with_response_stream(
        EndpointName="ouzel",
        ContentType="application/json",
        Body=json.dumps({**body, "stream": True}),
    )
    assert streamed["ContentType"] == "application/jsonlines"
    data = b"".join(event["PayloadPart"]["Bytes"] for event in streamed["Body"])
    lines = [json.loads(line) for line in data.splitlines()]
    assert "".join(line["token"]["text"] for line in lines) == lines[-1]["generated_text"] == text
    chat = {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8}
    streamed = runtime.invoke_endpoint_with_response_stream(
        EndpointName="ouzel", Body=json.dumps(chat)
    )
    data = b"".join(event["PayloadPart"]["Bytes"] for event in streamed["Body"])
    assert json.loads(data)["choices"][0]["message"]["content"]
    try:
        runtime.invoke_endpoint(EndpointName="ouzel", Body=json.dumps({"inputs": ""}))
    except runtime.exceptions.ModelError as error:
        assert error.response["OriginalStatusCode"] == 424
        assert "inputs" in error.response["OriginalMessage"]
    else:
        raise AssertionError("an empty input was taken")
    try:
        runtime.invoke_endpoint(EndpointName="other", Body=json.dumps(body))
    except runtime.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "ValidationError", error.response
    else:
        raise AssertionError("an unknown endpoint was found")


if __name__ == "__main__":
    main(sys.argv[1])

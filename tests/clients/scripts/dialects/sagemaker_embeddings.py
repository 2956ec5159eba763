"""Embeds a text, a list of texts and the rows of a CSV body with boto3's sagemaker-runtime."""

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

    def invoke(content_type: str, body: str) -> object:
        answer = runtime.invoke_endpoint(EndpointName="ouzel", ContentType=content_type, Body=body)
        return json.load(answer["Body"])

    one = invoke("application/json", json.dumps({"inputs": "the sea"}))
    assert isinstance(one, list) and all(isinstance(value, float) for value in one), one
    several = invoke("application/json", json.dumps({"inputs": ["the sea", "a hill, high"]}))
    rows = invoke("text/csv", 'inputs\nthe sea\n"a hill, high"\n')
    assert isinstance(several, list) and isinstance(rows, list)
    for vectors in (several, rows):
        assert len(vectors) == 2 and len(vectors[0]) == len(one)
        assert max(abs(ours - theirs) for ours, theirs in zip(vectors[0], one, strict=True)) < 1e-3
    try:
        runtime.invoke_endpoint(EndpointName="ouzel", ContentType="text/csv", Body="text\nthe sea")
    except runtime.exceptions.ModelError as error:
        assert error.response["OriginalStatusCode"] == 424
        assert "column inputs" in error.response["OriginalMessage"]
    else:
        raise AssertionError("a CSV body without the column inputs was taken")


if __name__ == "__main__":
    main(sys.argv[1])

"""Pulls and deletes a model as a user of `ollama` does.

Usage: `python ollama_pulls.py ROOT MODEL ADMIN_KEY`.
"""

import sys

import ollama

root, model, admin_key = sys.argv[1:]
everybody = ollama.Client(host=root, trust_env=False)
admin = ollama.Client(host=root, trust_env=False, headers={"Authorization": f"Bearer {admin_key}"})


def pulls_with_progress() -> None:
    lines = list(admin.pull(model, stream=True))
    files = {line.digest: line for line in lines if line.digest}
    assert lines[0].status == "pulling manifest", lines[0]
    assert files, lines
    for line in files.values():
        assert line.completed == line.total, line
    assert lines[-1].status == "success", lines[-1]


def finds_it_there() -> None:
    assert everybody.pull(model).status == "success"
    assert admin.pull(f"hf.co/{model}:latest").status == "success"


def is_refused(status: int, client: ollama.Client, name: str) -> None:
    try:
        client.delete(name)
    except ollama.ResponseError as error:
        assert error.status_code == status, error
        assert error.error, error
    else:
        raise AssertionError(f"{name} was deleted")


def reads_the_reason_of_a_failure() -> None:
    try:
        list(admin.pull("owner/missing", stream=True))
    except ollama.ResponseError as error:
        assert "has no model owner/missing" in error.error, error
    else:
        raise AssertionError("no error")


if __name__ == "__main__":
    pulls_with_progress()
    finds_it_there()
    is_refused(401, everybody, model)
    is_refused(409, admin, "ouzel-demo")
    assert admin.delete(model).status == "success"
    is_refused(404, admin, model)
    reads_the_reason_of_a_failure()

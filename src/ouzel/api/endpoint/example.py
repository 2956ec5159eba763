"""Returns an example request for a model, for people who want to try it."""

import shlex
from dataclasses import dataclass

import msgspec

from ouzel.generation import ServedModel


@dataclass(frozen=True, slots=True)
class Example:
    path: str  # the path below /v1
    body: dict[str, object]
    is_form: bool = False  # the body is a form; `@` begins the name of a file
    output: str = ""  # name of the file for an answer that is no text

    def curl_arguments(self) -> list[str]:
        """Returns the arguments for curl that send the body, quoted for a shell."""
        if self.is_form:
            return [f"-F {shlex.quote(f'{name}={value}')}" for name, value in self.body.items()]
        to_file = [f"-o {shlex.quote(self.output)}"] if self.output else []
        return [f"-d {shlex.quote(msgspec.json.encode(self.body).decode())}", *to_file]


def make_example(model: ServedModel) -> Example:
    name = model.names[0]
    match model.engine.info.task:
        case "embed" if "text" in model.engine.info.forms:
            return Example("/embeddings", {"model": name, "input": "Once upon a time"})
        case "embed" | "score":
            return Example(
                "/rerank",
                {"model": name, "query": "What is blue?", "documents": ["the sea", "the sun"]},
            )
        case "transcribe":
            fields: dict[str, object] = {"model": name, "file": "@speech.wav"}
            return Example("/audio/transcriptions", fields, is_form=True)
        case "speak":
            spoken: dict[str, object] = {
                "model": name,
                "input": "Once upon a time",
                "response_format": "wav",
            }
            return Example("/audio/speech", spoken, output="speech.wav")
        case "generate" if model.renderer.chat_template is None:
            return Example(
                "/completions", {"model": name, "prompt": "Once upon a time", "max_tokens": 32}
            )
        case "generate":
            return make_chat_example(name)


def make_chat_example(name: str) -> Example:
    messages = [{"role": "user", "content": "Hello!"}]
    return Example("/chat/completions", {"model": name, "messages": messages})

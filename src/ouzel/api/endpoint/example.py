"""Returns an example request for a model, for people who want to try it."""

from dataclasses import dataclass

from ouzel.generation import ServedModel


@dataclass(frozen=True, slots=True)
class Example:
    path: str  # the path below /v1
    body: dict[str, object]


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
        case "transcribe":  # a form: `file` is the name of a sound file
            return Example("/audio/transcriptions", {"model": name, "file": "@speech.wav"})
        case "generate" if model.renderer.chat_template is None:
            return Example(
                "/completions", {"model": name, "prompt": "Once upon a time", "max_tokens": 32}
            )
        case "generate":
            return make_chat_example(name)


def make_chat_example(name: str) -> Example:
    messages = [{"role": "user", "content": "Hello!"}]
    return Example("/chat/completions", {"model": name, "messages": messages})

"""Formats the tokens and times of answers for /stats."""

from collections.abc import Sequence

from ouzel.terminal_chat.answer import Answer

_MIN_STREAMED_S = 0.1


def format_stats(answers: Sequence[Answer]) -> str:
    if not answers:
        return "there is no answer yet"
    lines = [f"last answer: {_describe_answer(answers[-1])}"]
    counted = [answer.usage for answer in answers if answer.usage is not None]
    if len(answers) > 1:
        prompt = sum(usage.prompt_tokens for usage in counted)
        cached = sum(usage.cached_tokens for usage in counted)
        completion = sum(usage.completion_tokens for usage in counted)
        lines.append(f"{len(answers)} answers: {_tokens(prompt, cached, completion)}")
    return "\n".join(lines)


def _describe_answer(answer: Answer) -> str:
    facts = []
    if answer.first_s is not None:
        facts.append(f"TTFT {answer.first_s - answer.begin_s:.2f} s")
    if answer.usage is None:
        return ", ".join([*facts, "the server counted no tokens"])
    usage = answer.usage
    if answer.first_s is not None and answer.end_s is not None and usage.completion_tokens > 1:
        rate = _rate(usage.completion_tokens, answer.begin_s, answer.first_s, answer.end_s)
        facts.append(f"{rate:.1f} tokens/s")
    return ", ".join(
        [*facts, _tokens(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)]
    )


def _rate(num_tokens: int, begin_s: float, first_s: float, end_s: float) -> float:
    """Returns the tokens per second after the first token.

    If all tokens came within 0.1 s, returns the tokens per second of the whole request.
    """
    if end_s - first_s < _MIN_STREAMED_S:
        return num_tokens / max(end_s - begin_s, 1e-9)
    return (num_tokens - 1) / (end_s - first_s)


def _tokens(prompt: int, cached: int, completion: int) -> str:
    return f"{prompt} prompt tokens ({cached} cached), {completion} completion tokens"

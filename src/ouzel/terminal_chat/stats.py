"""Tokens and times of answers, for people."""

from collections.abc import Sequence

from ouzel.terminal_chat.answer import Answer


def stats_text(answers: Sequence[Answer]) -> str:
    if not answers:
        return "there is no answer yet"
    lines = [f"last answer: {_of_answer(answers[-1])}"]
    counted = [answer.usage for answer in answers if answer.usage is not None]
    if len(answers) > 1:
        prompt, cached, completion = (
            sum(usage.prompt_tokens for usage in counted),
            sum(usage.cached_tokens for usage in counted),
            sum(usage.completion_tokens for usage in counted),
        )
        lines.append(f"{len(answers)} answers: {_tokens(prompt, cached, completion)}")
    return "\n".join(lines)


def _of_answer(answer: Answer) -> str:
    facts = []
    if answer.first_s is not None:
        facts.append(f"TTFT {answer.first_s - answer.begin_s:.2f} s")
    if answer.usage is None:
        return ", ".join([*facts, "the server counted no tokens"])
    usage = answer.usage
    if answer.first_s is not None and answer.end_s is not None and usage.completion_tokens > 1:
        facts.append(f"{(usage.completion_tokens - 1) / max(answer.end_s - answer.first_s, 1e-9):.1f} tokens/s")
    return ", ".join([*facts, _tokens(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)])


def _tokens(prompt: int, cached: int, completion: int) -> str:
    return f"{prompt} prompt tokens ({cached} cached), {completion} completion tokens"

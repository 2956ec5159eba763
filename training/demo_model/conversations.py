"""Generated conversations: the mix of skills, their rendering with the chat template, and token arrays for training.

python -m training.demo_model.conversations --shards 8 --output /path/for/token/arrays
"""

from __future__ import annotations

import argparse
import functools
import json
import re
from collections.abc import Callable, Iterator
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from training.demo_model import skills_chat as chat
from training.demo_model import skills_text as text_skills
from training.demo_model import skills_tools as tool_skills
from training.demo_model.exchanges import Conversation, Exchange, Message
from training.demo_model.sampling import Sampler, is_held_out

MODEL_DIRECTORY = Path(__file__).resolve().parents[2] / "src" / "ouzel" / "demo" / "model"
NO_THOUGHT = "<think>\n\n</think>\n\n"
ASSISTANT = re.compile(r"(?<=<\|im_start\|>assistant\n).*?<\|im_end\|>", re.DOTALL)
MAX_TOKENS = 2048


# --------------------------------------------------------------------------- building conversations


def plain_exchange(sampler: Sampler) -> Exchange:
    """A short exchange of any simple skill, to fill a conversation with."""
    makers: list[Callable[[Sampler], Exchange]] = [
        chat.small_talk,
        chat.identity,
        text_skills.arithmetic,
        text_skills.arithmetic,
        text_skills.repeat,
        text_skills.listing,
        chat.refusal,
    ]
    return sampler.rng.choice(makers)(sampler)


def join(
    skill: str, sampler: Sampler, exchanges: list[Exchange], system: str | None, thinking: bool
) -> Conversation:
    """Exchanges as the messages of a conversation; the last one carries its thought."""
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    for exchange in exchanges:
        messages += [
            {"role": "user", "content": exchange.user},
            {"role": "assistant", "content": exchange.answer},
        ]
    last = exchanges[-1]
    if thinking:
        messages[-1]["reasoning_content"] = last.thought
    return Conversation(skill, messages, last.check, last.accepted, thinking=thinking)


def usual_system(sampler: Sampler) -> str | None:
    """A system prompt that changes nothing, or none."""
    return sampler.pick(chat.SYSTEM_PROMPTS) if sampler.chance(0.25) else None


def single(
    skill: str, maker: Callable[[Sampler], Exchange]
) -> Callable[[Sampler, bool], Conversation]:
    """A builder of conversations that end with an exchange of one skill."""

    def build(sampler: Sampler, thinking: bool) -> Conversation:
        count = sampler.rng.choice((1, 1, 1, 2, 2, 3))
        same = sampler.chance(0.5)
        exchanges = [
            maker(sampler) if same else plain_exchange(sampler) for _ in range(count - 1)
        ] + [maker(sampler)]
        return join(skill, sampler, exchanges, usual_system(sampler), thinking)

    return build


def build_extraction(sampler: Sampler, thinking: bool) -> Conversation:
    """JSON extraction, alone or after something else."""
    if sampler.chance(0.12):
        return join(
            "extraction", sampler, [text_skills.reading(sampler)], usual_system(sampler), thinking
        )
    system, exchange = text_skills.extraction(sampler)
    before = [plain_exchange(sampler)] if system is None and sampler.chance(0.15) else []
    return join(
        "extraction", sampler, [*before, exchange], system or usual_system(sampler), thinking
    )


def build_memory(sampler: Sampler, thinking: bool) -> Conversation:
    """A fact, other things, and a question for the fact."""
    kind = sampler.rng.random()
    fillers = [plain_exchange(sampler) for _ in range(sampler.rng.choice((0, 0, 1, 1, 2)))]
    if kind < 0.08:
        return join(
            "memory",
            sampler,
            [*fillers, chat.unknown_memory(sampler)],
            usual_system(sampler),
            thinking,
        )
    if kind < 0.16:
        system, question = chat.told_by_system(sampler)
        return join("memory", sampler, [*fillers, question], system, thinking)
    first, last = chat.memory(sampler)
    if sampler.chance(0.3):
        other_first, other_last = chat.memory(sampler)
        if other_last.answer.split(" is ")[0] != last.answer.split(" is ")[0]:
            exchanges = [first, other_first] if sampler.chance(0.5) else [other_first, first]
            return join(
                "memory", sampler, [*exchanges, *fillers, last], usual_system(sampler), thinking
            )
    return join("memory", sampler, [first, *fillers, last], usual_system(sampler), thinking)


def build_system(sampler: Sampler, thinking: bool) -> Conversation:
    """A system prompt that changes the answers."""
    makers = [chat.small_talk, text_skills.arithmetic, text_skills.repeat, chat.identity]
    exchanges = [
        sampler.rng.choice(makers)(sampler) for _ in range(sampler.rng.choice((1, 1, 1, 2, 3)))
    ]
    exchanges = [
        text_skills.arithmetic(sampler) if len(item.answer) > 160 else item for item in exchanges
    ]
    system, changed = chat.with_instruction(sampler, exchanges)
    return join("system prompt", sampler, changed, system, thinking)


@functools.cache
def word_pieces() -> list[str]:
    """The vocabulary's tokens that consist of letters."""
    vocabulary = Tokenizer.from_file(str(MODEL_DIRECTORY / "tokenizer.json")).get_vocab()
    return sorted(
        piece for piece in vocabulary if len(piece) > 1 and re.fullmatch("[A-Za-z]?[a-z]+", piece)
    )


def pieced_word(sampler: Sampler, most: int) -> str:
    """A word made of up to `most` random tokens, on the sampler's side."""
    while True:
        word = "".join(sampler.any(word_pieces()) for _ in range(sampler.rng.randint(1, most)))
        if not (is_held_out(word) or is_held_out(word.lower())) or sampler.held_out:
            return word


def drilled_word(sampler: Sampler) -> str:
    """A code, a known word, or random tokens with or without a sign."""
    kind = sampler.rng.random()
    if kind < 0.2:
        return sampler.random_code()
    if kind < 0.4:
        return sampler.word()
    sign = sampler.any(list("!?.,:;'\"()[]{}<>=+*/%$&#@~^|_-")) if sampler.chance(0.1) else ""
    return pieced_word(sampler, 3) + sign


def build_copy_drill(sampler: Sampler, thinking: bool) -> Conversation:
    """Repetition of random tokens, which teaches copying as such."""
    words = [drilled_word(sampler) for _ in range(sampler.rng.randint(2, 20))]
    content = sampler.any([" ", " ", " ", ", ", "\n"]).join(words)
    request = sampler.any(
        ["Repeat: ", "Copy this: ", "Echo: ", "Say: ", "Repeat this: ", "Write: "]
    )
    exchange = Exchange(request + content, content, "I repeat the text.")
    return join("repeat", sampler, [exchange], None, thinking)


def build_sum_drill(sampler: Sampler, thinking: bool) -> Conversation:
    """Many sums in a row."""
    maker = text_skills.arithmetic if sampler.chance(0.3) else text_skills.short_sum
    exchanges = [maker(sampler) for _ in range(sampler.rng.randint(4, 12))]
    return join("arithmetic", sampler, exchanges, None, thinking)


def build_step_drill(sampler: Sampler, thinking: bool) -> Conversation:
    """One sum with its written steps."""
    maker = text_skills.arithmetic if sampler.chance(0.6) else text_skills.short_sum
    return join("arithmetic", sampler, [maker(sampler)], None, thinking)


def build_count_drill(sampler: Sampler, thinking: bool) -> Conversation:
    """Short counts in a row, which teaches where to stop."""
    exchanges = [text_skills.counting(sampler, True) for _ in range(sampler.rng.randint(2, 5))]
    return join("counting", sampler, exchanges, None, thinking)


def build_spell_drill(sampler: Sampler, thinking: bool) -> Conversation:
    """Spelling of words and of random tokens in a row, which teaches the letters of every token."""
    exchanges: list[Exchange] = []
    while len(exchanges) < sampler.rng.randint(3, 9):
        word = pieced_word(sampler, 3) if sampler.chance(0.6) else sampler.word()
        exchanges.append(text_skills.spelling(sampler, word))
    return join("listing", sampler, exchanges, None, thinking)


def build_long_talk(sampler: Sampler, thinking: bool) -> Conversation:
    """A long conversation in which a fact from far above is asked for at the end."""
    count = sampler.rng.choice((6, 8, 12, 16))
    exchanges = [plain_exchange(sampler) for _ in range(count)]
    first, last = chat.memory(sampler)
    exchanges.insert(sampler.rng.randrange(count), first)
    return join("memory", sampler, [*exchanges, last], usual_system(sampler), thinking)


def tool_round(sampler: Sampler, request: tool_skills.Request) -> list[Message]:
    """A question, the call, its result and the answer."""
    result, answer = tool_skills.result_with_answer(sampler, request)
    return [
        {"role": "user", "content": request.sentence},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [tool_skills.call(request.name, request.arguments)],
        },
        {"role": "tool", "content": result},
        {"role": "assistant", "content": answer},
    ]


def shuffled(sampler: Sampler, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools in random order, without repetitions of a name."""
    unique = list({tool["function"]["name"]: tool for tool in tools}.values())
    sampler.rng.shuffle(unique)
    return unique


def tool_thought(calls: list[dict[str, Any]]) -> str:
    """The thought that comes before calls."""
    return "I should call " + " and ".join(item["function"]["name"] for item in calls) + "."


def build_tool_call(sampler: Sampler, thinking: bool) -> Conversation:
    """A request that one of the offered tools answers, or two calls at once."""
    if sampler.chance(0.18):
        sentence, requests = tool_skills.parallel(sampler)
    else:
        request = tool_skills.any_request(sampler)
        sentence, requests = request.sentence, [request]
    extra = tool_skills.distractors(
        sampler,
        requests,
        sampler.rng.choice((0, 0, 0, 1, 1, 2))
        if len(requests) == 1
        else sampler.rng.choice((0, 0, 0, 1)),
    )
    calls = [tool_skills.call(request.name, request.arguments) for request in requests]
    system = usual_system(sampler)
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    if sampler.chance(0.12):
        earlier = tool_skills.any_request(sampler)
        if not any(tool_skills.similar(earlier, request) for request in requests):
            messages += tool_round(sampler, earlier)
            extra = [
                *[tool for tool in extra if tool["function"]["name"] != earlier.name][:1],
                earlier.tool,
            ]
    elif sampler.chance(0.1):
        before = chat.small_talk(sampler)
        if len(before.answer) < 100:
            messages += [
                {"role": "user", "content": before.user},
                {"role": "assistant", "content": before.answer},
            ]
    messages += [
        {"role": "user", "content": sentence},
        {"role": "assistant", "content": "", "tool_calls": calls},
    ]
    if thinking:
        messages[-1]["reasoning_content"] = tool_thought(calls)
    tools = shuffled(sampler, [request.tool for request in requests] + extra)
    return Conversation("tool call", messages, "calls", tools=tools, thinking=thinking)


def build_no_call(sampler: Sampler, thinking: bool) -> Conversation:
    """Tools are offered, but the message needs none of them or another one."""
    kind = sampler.rng.random()
    if kind < 0.1:
        exchange, avoided = chat.refusal(sampler), []
        exchange.answer, exchange.accepted = (
            tool_skills.NO_TOOL,
            [tool_skills.NO_TOOL, chat.REFUSAL],
        )
        tools = [
            tool_skills.invented_request(sampler).tool for _ in range(sampler.rng.randint(1, 2))
        ]
        conversation = join("no tool needed", sampler, [exchange], usual_system(sampler), thinking)
        conversation.tools = shuffled(sampler, tools)
        return conversation
    if kind < 0.4:
        wanted = tool_skills.any_request(sampler)
        if tool_skills.is_sum(wanted):
            return build_no_call(sampler, thinking)
        exchange = Exchange(
            wanted.sentence,
            tool_skills.NO_TOOL,
            "None of the tools fits.",
            "one_of",
            [tool_skills.NO_TOOL, chat.REFUSAL],
        )
        avoided = [wanted]
    else:
        makers = [
            chat.small_talk,
            chat.identity,
            text_skills.repeat,
            text_skills.listing,
            chat.small_talk,
        ]
        maker = sampler.rng.choice(makers)
        exchange, avoided = maker(sampler), []
    tools = shuffled(
        sampler, tool_skills.distractors(sampler, avoided, sampler.rng.choice((1, 1, 1, 2)))
    )
    conversation = join("no tool needed", sampler, [exchange], usual_system(sampler), thinking)
    conversation.tools = tools
    return conversation


def build_tool_result(sampler: Sampler, thinking: bool) -> Conversation:
    """The answer after a tool has returned something."""
    if sampler.chance(0.15):
        sentence, requests = tool_skills.parallel(sampler)
    else:
        request = tool_skills.any_request(sampler)
        sentence, requests = request.sentence, [request]
    calls = [tool_skills.call(request.name, request.arguments) for request in requests]
    results = [tool_skills.result_with_answer(sampler, request) for request in requests]
    system = usual_system(sampler) if sampler.chance(0.5) else None
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    messages += [
        {"role": "user", "content": sentence},
        {"role": "assistant", "content": "", "tool_calls": calls},
    ]
    messages += [{"role": "tool", "content": content} for content, _ in results]
    messages.append({"role": "assistant", "content": " ".join(answer for _, answer in results)})
    if thinking:
        messages[-1]["reasoning_content"] = "I have the result of the tool and will tell the user."
    extra = tool_skills.distractors(sampler, requests, sampler.rng.choice((0, 0, 0, 0, 1)))
    tools = shuffled(sampler, [request.tool for request in requests] + extra)
    return Conversation("tool result", messages, "exact", tools=tools, thinking=thinking)


Builder = Callable[[Sampler, bool], Conversation]

# The builder of each skill, its share of the training conversations, and how often it thinks aloud.
SKILLS: dict[str, tuple[Builder, float, float]] = {
    "small talk": (single("small talk", chat.small_talk), 8, 0.25),
    "identity": (single("identity", chat.identity), 8, 0.25),
    "arithmetic": (single("arithmetic", text_skills.arithmetic), 16, 0.4),
    "sum drill": (build_sum_drill, 12, 0.2),
    "step drill": (build_step_drill, 6, 1.0),
    "repeat": (single("repeat", text_skills.repeat), 16, 0.25),
    "copy drill": (build_copy_drill, 6, 0.0),
    "extraction": (build_extraction, 18, 0.2),
    "tool call": (build_tool_call, 19, 0.2),
    "no tool needed": (build_no_call, 11, 0.15),
    "tool result": (build_tool_result, 6, 0.1),
    "refusal": (single("refusal", chat.refusal), 7, 0.15),
    "counting": (single("counting", text_skills.counting), 3, 0.1),
    "count drill": (build_count_drill, 6, 0.1),
    "listing": (single("listing", text_skills.listing), 5, 0.1),
    "spell drill": (build_spell_drill, 10, 0.1),
    "memory": (build_memory, 6, 0.15),
    "long talk": (build_long_talk, 0.3, 0.15),
    "system prompt": (build_system, 13, 0.15),
}


def conversation(sampler: Sampler) -> Conversation:
    """A conversation of the training mix."""
    skill = sampler.rng.choices(list(SKILLS), [share for _, share, _ in SKILLS.values()])[0]
    builder, _, thinking = SKILLS[skill]
    return builder(sampler, sampler.chance(thinking))


# --------------------------------------------------------------------------- rendering


class Renderer:
    """The shipped chat template."""

    def __init__(self, directory: Path = MODEL_DIRECTORY) -> None:
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
        self.template = environment.from_string(
            (directory / "chat_template.jinja").read_text(encoding="utf-8")
        )

    def full(self, item: Conversation) -> str:
        """The whole conversation with its answers."""
        return self.template.render(messages=item.messages, tools=item.tools)

    def prompt(self, item: Conversation) -> str:
        """The conversation up to where the last answer begins."""
        return self.template.render(
            messages=item.messages[:-1],
            tools=item.tools,
            add_generation_prompt=True,
            enable_thinking=item.thinking,
        )


def segments(rendered: str) -> Iterator[tuple[str, int]]:
    """The pieces of a rendered conversation with the number of leading tokens that are not learned (-1: all).

    An earlier answer stands there without its think block, so its first token is not what the model would write.
    """
    position, matches = 0, list(ASSISTANT.finditer(rendered))
    for number, match in enumerate(matches):
        start, is_last = match.start(), number == len(matches) - 1
        if is_last and rendered.startswith(NO_THOUGHT, start):
            start += len(NO_THOUGHT)
        yield rendered[position:start], -1
        yield rendered[start : match.end()], 0 if is_last else 1
        position = match.end()


def encode(tokenizer: Tokenizer, rendered: str) -> tuple[list[int], list[int]]:
    """Token ids and, for each, whether it is learned."""
    token_ids: list[int] = []
    learned: list[int] = []
    for piece, skipped in segments(rendered):
        ids = tokenizer.encode(piece, add_special_tokens=False).ids
        first = len(ids) if skipped < 0 else skipped
        token_ids += ids
        learned += [int(position >= first) for position in range(len(ids))]
    return token_ids, learned


# --------------------------------------------------------------------------- token arrays


def write_shard(arguments: tuple[int, int, Path]) -> None:
    """One file with the tokens, the learned flags and the lengths of many conversations."""
    seed, count, output = arguments
    sampler, renderer = Sampler(seed), Renderer()
    tokenizer = Tokenizer.from_file(str(MODEL_DIRECTORY / "tokenizer.json"))
    tokens: list[int] = []
    flags: list[int] = []
    lengths: list[int] = []
    while len(lengths) < count:
        token_ids, learned = encode(tokenizer, renderer.full(conversation(sampler)))
        if len(token_ids) <= MAX_TOKENS:
            tokens += token_ids
            flags += learned
            lengths.append(len(token_ids))
    path = output / f"shard{seed:05d}.npz"
    temporary = path.with_suffix(".tmp.npz")
    np.savez(
        temporary,
        tokens=np.array(tokens, np.uint16),
        learned=np.array(flags, np.uint8),
        lengths=np.array(lengths),
    )
    temporary.rename(path)
    print(
        f"{path.name}: {len(lengths)} conversations, {len(tokens)} tokens, {sum(flags)} learned",
        flush=True,
    )


def main() -> None:
    """Write the token arrays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="number (and seed) of the first shard")
    parser.add_argument("--conversations", type=int, default=20000, help="per shard")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    jobs = [
        (options.first + n, options.conversations, options.output) for n in range(options.shards)
    ]
    with Pool(options.processes) as pool:
        for _ in pool.imap_unordered(write_shard, jobs):
            pass


if __name__ == "__main__":
    main()

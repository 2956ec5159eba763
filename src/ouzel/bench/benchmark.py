"""Runs a benchmark: probes the server, warms it up, and makes one run after another."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from ouzel.bench.conversation import Conversation
from ouzel.bench.dataset import Line, read_conversations
from ouzel.bench.endpoints import Form
from ouzel.bench.goodput import Limits
from ouzel.bench.lengths import draw_length
from ouzel.bench.load import Load, send_all
from ouzel.bench.progress import Progress, show_progress
from ouzel.bench.prompt_texts import PromptTexts, find_prompt_texts
from ouzel.bench.run import Run, run_load, unless_stopped
from ouzel.bench.target import Target
from ouzel.bench.workloads import Shape, Workload, make_conversations


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a benchmark, with one run for each load.

    Each run has other prompts, so that no run finds prompts of another run in the prefix cache. A
    dataset with too few prompts is used again from its start; a remark says so.
    """

    shape: Shape
    dataset: tuple[Line, ...]  # prompts of a file; empty: prompts are generated
    loads: tuple[Load, ...]
    num_warmup: int
    seed: int
    limits: Limits | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The runs, and remarks on differences between the plan and the runs."""

    runs: tuple[Run, ...]
    remarks: tuple[str, ...]
    is_stopped: bool  # the last run is incomplete, or some loads have no run


async def benchmark(
    target: Target, plan: Plan, *, stopping: asyncio.Event, terminal: TextIO
) -> Outcome:
    """Runs the benchmark until its end or until `stopping` is set; progress goes to `terminal`.

    Raises ApiFailure if the server does not accept the first request.
    """
    prepared = await unless_stopped(stopping, _prepare(target, plan))
    if prepared is None:
        return Outcome((), (), is_stopped=True)
    target, texts = prepared
    runs: list[Run] = []
    for number, load in enumerate(plan.loads):
        conversations = await unless_stopped(stopping, _conversations(plan, texts, number))
        if conversations is None or stopping.is_set():
            break
        progress = Progress(plan.shape.num_requests)
        async with show_progress(progress, terminal):
            rng = random.Random(f"{_seed(plan, number)}:arrivals")
            run = await run_load(
                target, conversations, load, rng=rng, progress=progress, stopping=stopping
            )
        runs.append(run)
    is_stopped = len(runs) < len(plan.loads) or any(run.is_stopped for run in runs)
    has_tools = plan.shape.workload is Workload.TOOLS
    remarks = _remark_on_server(
        target.form, counts_tokens=texts.counts_tokens or bool(plan.dataset)
    )
    if plan.dataset and len(plan.dataset) < plan.shape.num_requests * len(runs):
        remarks.append(
            "prompts of the file were sent more than once: the prefix cache of the server may have "
            "had them"
        )
    remarks += _remark_on_runs(runs, has_tools=has_tools)
    if is_stopped:
        remarks.append("stopped before the end: these are the figures until then")
    return Outcome(tuple(runs), tuple(remarks), is_stopped)


async def _prepare(target: Target, plan: Plan) -> tuple[Target, PromptTexts]:
    """Finds the fields that the server accepts, and warms the server up. Raises ApiFailure."""
    texts = await find_prompt_texts(target.client, target.model)
    [first] = await make_conversations(replace(plan.shape, num_requests=1), texts, "first")
    target = await target.with_accepted_form(first)
    await _warm_up(target, plan, texts)
    return target, texts


async def _warm_up(target: Target, plan: Plan, texts: PromptTexts) -> None:
    """Sends requests that are not measured, with the concurrency of the first load.

    Errors are ignored: the run meets the same errors and reports them.
    """
    # With one turn no request waits for another.
    shape = replace(plan.shape, num_requests=plan.num_warmup, num_turns=1)
    conversations = await make_conversations(shape, texts, f"{plan.seed}:warmup")
    load = Load(max_concurrency=plan.loads[0].max_concurrency)

    async def converse(conversation: Conversation) -> None:
        await target.ask(conversation.turns[0], tools=conversation.tools)

    await send_all(conversations, load, converse, random.Random(0))


def _seed(plan: Plan, number: int) -> str:
    """Returns the random seed of the run with this number."""
    return f"{plan.seed}:{number}"


async def _conversations(plan: Plan, texts: PromptTexts, number: int) -> list[Conversation]:
    """Makes the conversations of one run.

    Each run takes the lines of a dataset that follow the lines of the run before.
    """
    if not plan.dataset:
        return await make_conversations(plan.shape, texts, _seed(plan, number))
    rng, num_requests = random.Random(_seed(plan, number)), plan.shape.num_requests
    output_lens = [draw_length(plan.shape.output_lens, rng) for _ in range(num_requests)]
    return read_conversations(plan.dataset, output_lens, start=number * num_requests)


def _remark_on_server(form: Form, *, counts_tokens: bool) -> list[str]:
    remarks = []
    if not counts_tokens:
        remarks.append(
            "the server has no /tokenize and /detokenize: the lengths of prompts are in words, not "
            "in tokens"
        )
    if not form.ignores_eos:
        remarks.append("the server refuses ignore_eos: answers may be shorter than --output-len")
    if not form.includes_usage:
        remarks.append(
            "the server refuses stream_options: chunks with output are counted as tokens"
        )
    return remarks


def _remark_on_runs(runs: Sequence[Run], *, has_tools: bool) -> list[str]:
    completed = [each for run in runs for each in run.measurements if each.is_complete]
    num_unsent = sum(run.num_prompts - len(run.measurements) for run in runs if not run.is_stopped)
    num_uncounted = sum(not each.is_counted for each in completed)
    num_short = sum(each.output_len < each.max_tokens for each in completed)
    remarks = []
    if num_cached := sum(each.cached_len for each in completed):
        num_input = sum(each.input_len for each in completed)
        remarks.append(
            f"{num_cached} of {num_input} input tokens were in the server's prefix cache"
        )
    if num_unsent:
        remarks.append(f"{num_unsent} requests were not sent, because the turn before them failed")
    if num_uncounted:
        remarks.append(
            f"{num_uncounted} of {len(completed)} answers came without usage: chunks are counted "
            "as tokens"
        )
    if num_short and not has_tools:
        remarks.append(f"{num_short} of {len(completed)} answers are shorter than --output-len")
    return remarks

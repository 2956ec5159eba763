"""How many steps a prompt waits for others.

A step has 16 tokens and a block has 4, unless a test sets other sizes.
"""

from collections.abc import Callable, Iterable
from random import Random

import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.core import EngineCore
from ouzel.engine.scheduling.scheduler import Scheduled, Scheduler
from ouzel.engine.state.sequence import Sequence
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest
from tests.engine.requests import MAX_STEPS, make_request, run, run_alone

STEP, BLOCK = 16, 4
QUARTER = STEP // 4


def make_engine(
    *, num_blocks: int = 2000, max_model_len: int = 1000, prefix_caching: bool = False
) -> EngineCore:
    runner = FakeRunner(
        num_blocks=num_blocks,
        block_size=BLOCK,
        max_model_len=max_model_len,
        max_num_batched_tokens=STEP,
        max_num_seqs=8,
    )
    return EngineCore(runner, prefix_caching=prefix_caching)


def prompt(
    num_tokens: int, *, max_tokens: int = 1, priority: int = 0, seed: int = 0
) -> EngineRequest:
    random = Random(seed)
    return make_request(
        [random.randrange(97) for _ in range(num_tokens)], max_tokens=max_tokens, priority=priority
    )


def find_first_token_steps(
    engine: EngineCore,
    requests: Iterable[EngineRequest],
    before_step: Callable[[int], None] = lambda step: None,
) -> list[int]:
    """Returns the number of the step that gives each request its first token."""
    requests = list(requests)
    for request in requests:
        engine.add(request)
    steps: dict[str, int] = {}
    step = 0
    while not {request.request_id for request in requests} <= steps.keys():
        before_step(step)
        for output in engine.step():
            steps.setdefault(output.request_id, step)
        step += 1
        assert step < MAX_STEPS, "somebody waits for ever"
    return [steps[request.request_id] for request in requests]


def test_short_prompts_do_not_wait_for_long_ones() -> None:
    long_ones = [prompt(800), prompt(800)]
    engine = make_engine()
    for request in long_ones:
        engine.add(request)
    engine.step()

    assert find_first_token_steps(engine, [prompt(4), prompt(4), prompt(4)]) == [0, 0, 0]


def test_an_endless_flow_of_short_prompts_leaves_a_long_one_its_quarter() -> None:
    engine = make_engine()

    def add_more_than_a_step(step: int) -> None:
        engine.add(prompt(STEP, seed=1))
        engine.add(prompt(STEP, seed=2))

    [step] = find_first_token_steps(engine, [prompt(200)], add_more_than_a_step)

    assert 150 // QUARTER < step < 200 // QUARTER


@pytest.mark.parametrize("seed", range(6))
def test_no_request_waits_for_more_than_four_times_the_earlier_tokens(seed: int) -> None:
    random = Random(seed)
    requests = [prompt(random.choice([1, 3, 16, 50, 300]), seed=i) for i in range(25)]

    steps = find_first_token_steps(make_engine(), requests)

    num_steps_before = 0
    for request, step in zip(requests, steps, strict=True):
        num_steps_before += -(-len(request.prompt_token_ids) // QUARTER)
        assert step < num_steps_before


def test_the_sum_of_the_work_is_no_more_than_before() -> None:
    """Each step uses its budget to the last block."""
    requests = [
        prompt(200, seed=1),
        prompt(5, seed=2),
        prompt(300, seed=3),
        prompt(17, seed=4),
        prompt(100, seed=5),
    ]
    num_tokens = sum(len(request.prompt_token_ids) for request in requests)

    assert max(find_first_token_steps(make_engine(), requests)) <= num_tokens // (STEP - BLOCK)


def test_a_better_priority_goes_before_a_shorter_prompt() -> None:
    urgent, short = prompt(100, priority=-1), prompt(4)

    assert find_first_token_steps(make_engine(), [short, urgent]) == [6, 6]


def test_a_long_prompt_out_of_the_cache_is_short() -> None:
    engine = make_engine(prefix_caching=True)
    known = prompt(400, seed=9)
    run(engine, [known])
    engine.add(prompt(300, seed=1))
    engine.step()

    [follow_up] = find_first_token_steps(
        engine, [make_request([*known.prompt_token_ids, 5, 6, 7], max_tokens=1)]
    )

    assert follow_up == 0


def test_a_prompt_that_waits_for_blocks_is_passed_by_requests_that_leave_it_room() -> None:
    engine = make_engine(num_blocks=50)  # the blocks have 4 tokens
    running = prompt(8, max_tokens=150)  # 2 blocks, then more and more
    engine.add(running)
    engine.step()
    engine.add(prompt(190))  # 48 blocks: they are free when `running` is over

    assert find_first_token_steps(engine, [prompt(4)]) == [0]
    # 4 + 48 are too many: it waits, and others behind it
    assert max(find_first_token_steps(engine, [prompt(16), prompt(4)])) > 100


@pytest.mark.parametrize("num_newcomer_tokens", [12, 150])
def test_a_prompt_that_waits_for_blocks_waits_for_no_newcomers(num_newcomer_tokens: int) -> None:
    engine = make_engine(num_blocks=50)
    running = prompt(40, max_tokens=60)
    engine.add(running)
    for _ in range(3):
        engine.step()
    large = prompt(160)  # 40 blocks

    def add_newcomer(step: int) -> None:
        engine.add(prompt(4, max_tokens=num_newcomer_tokens, seed=step))

    [step] = find_first_token_steps(engine, [large], add_newcomer)

    assert step <= 60 + 160 // QUARTER


def test_a_prompt_that_waits_for_places_waits_for_no_newcomers() -> None:
    engine = make_engine()  # the engine has 8 places
    engine.add(make_request([7, 8], n=3, max_tokens=60))
    search = make_request([1, 2, 3], max_tokens=2, beam_search=BeamSearchParams(width=6))

    def add_newcomer(step: int) -> None:
        if step % 10 == 0:  # it takes the one place that is left, and then four
            engine.add(make_request([4, 5, step % 97], n=4, max_tokens=900))

    engine.step()
    [step] = find_first_token_steps(engine, [search], add_newcomer)

    assert step <= 60 + 2


def test_newcomers_make_room_for_the_oldest_prompt() -> None:
    engine = make_engine(num_blocks=150)
    long, large = prompt(300, seed=1), prompt(400, seed=2)  # 75 and 100 blocks
    engine.add(long)
    engine.step()

    def add_newcomer(step: int) -> None:
        if step < 20:
            engine.add(prompt(4, max_tokens=300, seed=step))

    [step] = find_first_token_steps(engine, [large], add_newcomer)

    assert step <= 700 // QUARTER


def test_the_first_request_is_not_preempted_for_a_better_priority_that_waits() -> None:
    engine = make_engine(num_blocks=50)
    engine.add(prompt(44, max_tokens=60, priority=1))
    engine.step()

    assert find_first_token_steps(engine, [prompt(160)])[0] >= 59
    assert engine.stats().num_preemptions == 0


def test_preempted_newcomers_answer_as_if_alone() -> None:
    engine = make_engine(num_blocks=50)
    running = prompt(40, max_tokens=60)
    engine.add(running)
    engine.step()
    engine.add(prompt(160, max_tokens=4))
    newcomers = [prompt(4, max_tokens=80, seed=seed) for seed in range(3)]

    results = run(engine, newcomers)

    assert engine.stats().num_preemptions > 0
    for request in newcomers:
        alone = run_alone(make_engine(), request)[0].token_ids
        assert results[request.request_id, 0].token_ids == alone


def test_only_the_oldest_prompt_is_cut_within_a_block() -> None:
    runner = FakeRunner(
        num_blocks=2000, block_size=BLOCK, max_model_len=1000, max_num_batched_tokens=STEP
    )
    run(
        EngineCore(runner, prefix_caching=False),
        [prompt(num, seed=num) for num in (50, 7, 61, 33, 9)],
    )

    ends = [
        int(past + new)
        for batch in runner.batches
        for past, new in zip(
            batch.past_lens,
            batch.subsequence_begins[1:] - batch.subsequence_begins[:-1],
            strict=True,
        )
    ]
    assert {end for end in ends if end % BLOCK} == {50, 7, 61, 33, 9}


def test_tokens_that_a_grammar_forced_wait_for_no_prompt() -> None:
    blocks = BlockManager(num_blocks=100, block_size=BLOCK, prefix_caching=False)
    scheduler = Scheduler(blocks, max_num_seqs=8, max_num_batched_tokens=STEP)
    answering, long, short = (
        Sequence(prompt(num), 0, arrival) for arrival, num in enumerate((3, 100, 4))
    )
    scheduler.add(answering)
    assert [entry.num_new_tokens for entry in scheduler.schedule()] == [3]
    answering.num_computed_tokens = 3
    answering.token_ids += [1] * 9
    for sequence in (long, short):
        scheduler.add(sequence)

    assert {entry.sequence: entry.num_new_tokens for entry in scheduler.schedule()} == {
        answering: 9,
        long: 4,
    }


class CountingBlocks(BlockManager):
    """A block manager that counts how often a scheduler looks into the prefix cache."""

    num_looks = 0

    def share_prefix(self, sequence: Sequence) -> bool:
        self.num_looks += 1
        return super().share_prefix(sequence)


@pytest.mark.parametrize("num_blocks", [4000, 230], ids=["enough blocks", "too few blocks"])
def test_a_step_looks_up_only_prompts_that_it_may_start(num_blocks: int) -> None:
    """The cost of a look-up grows with the number of cached tokens of the prompt."""
    blocks = CountingBlocks(num_blocks=num_blocks, block_size=BLOCK, prefix_caching=True)
    scheduler = Scheduler(blocks, max_num_seqs=STEP, max_num_batched_tokens=STEP)
    known = prompt(200).prompt_token_ids
    for arrival in range(100):
        request = make_request(
            [*known, *prompt(30 + arrival % 7, seed=arrival).prompt_token_ids], max_tokens=4
        )
        scheduler.add(Sequence(request, 0, arrival))
    while scheduler.waiting or scheduler.running:
        num_waiting, num_looks = len(scheduler.waiting), blocks.num_looks
        scheduled = scheduler.schedule()
        num_started = num_waiting - len(scheduler.waiting)
        assert blocks.num_looks - num_looks <= num_started + 2
        take_step(scheduler, blocks, scheduled)


def take_step(scheduler: Scheduler, blocks: BlockManager, scheduled: list[Scheduled]) -> None:
    """Does an engine's work for one step, and gives each completed prompt the token 1."""
    for entry in scheduled:
        sequence, completes_prompt = entry.sequence, entry.completes_prompt
        blocks.mark_computed(sequence, entry.num_new_tokens)
        if completes_prompt:
            sequence.append(1, 1000)
        if sequence.is_finished:
            scheduler.remove(sequence)
    blocks.step_done()

"""Responses without HTTP, on a real store and a real engine client whose engine can be paused."""

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from ouzel.backends.fake import FakeEngine, FakeOptions
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.config import LimitsConfig
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.generation import ServedModel
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.observability import Metrics
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.render import PromptRenderer
from ouzel.responses.compaction.compactor import Compactor
from ouzel.responses.compaction.summariser import Summariser
from ouzel.responses.dialect import OPENAI, ResponseDialect
from ouzel.responses.preparer import Preparer
from ouzel.responses.run import Run
from ouzel.responses.runs import Runs
from ouzel.responses.stage import Stage
from ouzel.store.base import Store
from ouzel.store.sql_store import open_store
from ouzel.types.engine_request import EngineRequest
from ouzel.worker_threads import PreparationThreads
from tests.api.byte_tokens import DIE, FAIL, byte_tokenizer
from tests.api.engines import repeat_user_message
from tests.prompts.families import QWEN

_engine_may_work = threading.Event()


def create_pausable_parrot(options: dict[str, object]) -> FakeEngine:
    """Makes an engine that repeats the user's message, but waits while `pause_engine` holds it.

    It needs `in_thread=True`.
    """

    def say(request: EngineRequest, position: int) -> int:
        _engine_may_work.wait()
        return repeat_user_message(request, position)

    return FakeEngine(msgspec.convert(options, FakeOptions), say)


@dataclass
class Maker:
    """The parts of one server that make responses, and its log lines about their stages."""

    runs: Runs
    store: Store
    other_store: Store  # another server's connection to the same database
    file: Path
    _model: ServedModel
    _make_preparer: Callable[[ResponseDialect], Preparer]
    _preparers: list[Preparer]  # always one; `runs` shares the list
    _records: Callable[[], Sequence[logging.LogRecord]]

    def change_dialect(self, dialect: ResponseDialect) -> None:
        """Makes the server read all further bodies in another dialect."""
        self._preparers[:] = [self._make_preparer(dialect)]

    async def begin(self, text: str, **fields: object) -> Run:
        body = msgspec.json.encode({"input": text, **fields})
        with ExitStack() as place:
            place.enter_context(self._model.engine.admit())
            prepared = await self._preparers[0].prepare(
                body, key_id=None, arrival_s=time.perf_counter()
            )
            return self.runs.start(prepared, key_id=None, place=place.pop_all())

    def stages(self) -> list[Stage]:
        """Returns the stages of the test's only response, except the first stage."""
        records = [record for record in self._records() if record.levelno == logging.DEBUG]
        values = [record.args[1] for record in records if isinstance(record.args, tuple)]
        return [Stage(value) for value in values]

    async def wait_until(self, stage: Stage) -> None:
        while stage not in self.stages():
            await asyncio.sleep(0.005)

    @contextmanager
    def pause_engine(self) -> Iterator[None]:
        """Keeps the engine from starting a step inside the `with` block."""
        _engine_may_work.clear()
        try:
            yield
        finally:
            _engine_may_work.set()

    @property
    def has_computed(self) -> bool:
        """Tells whether the engine has made a step."""
        [engine] = self._model.engine.members
        return engine.stats() is not None

    @contextmanager
    def lock_store(self) -> Iterator[None]:
        """Locks the database for writers inside the `with` block; readers can go on."""
        with closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def break_store(self, moment: str, fault: str = "json('no JSON')") -> Iterator[None]:
        """Makes the database fail inside the `with` block.

        `moment` is the SQL of a trigger's event. The default `fault` is an error of the
        database itself.
        """
        with closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
            connection.execute(f"CREATE TRIGGER broken {moment} BEGIN SELECT {fault}; END")
            try:
                yield
            finally:
                connection.execute("DROP TRIGGER broken")


@pytest.fixture
async def engine() -> AsyncIterator[EngineClient]:
    _engine_may_work.set()
    options: dict[str, object] = {
        "vocab_size": 260,
        "failing_token_id": FAIL,
        "fatal_token_id": DIE,
        "step_s": 0.01,
    }
    spec = EngineSpec(factory="tests.responses.conftest:create_pausable_parrot", options=options)
    client = EngineClient(spec, in_thread=True)
    await client.start()
    yield client
    await client.close()


@pytest.fixture
async def maker(
    engine: EngineClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[Maker]:
    """Yields the maker, and at the end closes all responses."""
    caplog.set_level(logging.DEBUG, logger="ouzel.responses.run")
    file = tmp_path / "responses.sqlite3"
    store, other_store = [
        await open_store(f"sqlite:///{file}", max_age_s=3600, max_bytes=2**30) for _ in range(2)
    ]
    model = build_model(engine)
    threads, metrics = PreparationThreads(), Metrics("parrot")
    compactor = Compactor(model, threads, Summariser(model, LimitsConfig(), threads, metrics))

    def make_preparer(dialect: ResponseDialect) -> Preparer:
        limits = LimitsConfig()
        return Preparer(
            model, limits, store, threads, compactor=compactor, metrics=metrics, dialect=dialect
        )

    preparers = [make_preparer(OPENAI)]
    runs = Runs(lambda: preparers, store)
    yield Maker(
        runs,
        store,
        other_store,
        file,
        model,
        make_preparer,
        preparers,
        lambda: caplog.get_records("call"),
    )
    await runs.close()
    await store.close()
    await other_store.close()


def build_model(engine: EngineClient) -> ServedModel:
    tokenizer = byte_tokenizer()
    return ServedModel(
        names=("parrot",),
        tokenizer=tokenizer,
        renderer=PromptRenderer(
            tokenizer, ChatTemplate({"default": QWEN}, {}), engine.info.max_model_len
        ),
        sampling_defaults=SamplingDefaults(),
        engine=engine,
        output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
        vocabulary=GrammarVocabulary({}, tokenizer.vocab_size),
        created=0,
        system_fingerprint="fp",
    )

"""A real server on an ephemeral port, with a fake engine that says what the user said, one byte per token.

`|fail|` in a message makes the engine fail that request after its first token, `|die|` kills the engine, `#` in an
answer meets a bug of the server's, and a bell one of a native library.
Without a chat (completions) the engine repeats the prompt for ever.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import ParamSpec

import httpx
import msgspec
import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from ouzel import __version__
from ouzel.api.app import build_app
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.http.server.http_server import HttpServer
from ouzel.api.ovms.responses import response_dialect
from ouzel.backends.fake import FakeEngine, FakeOptions, echo
from ouzel.backends.fake_runner import FakeRunner
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.config import LimitsConfig, MediaConfig, ServerConfig
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel, system_fingerprint
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.base import Delta, Family, Parser
from ouzel.parsers.plain import PlainParser
from ouzel.parsers.registry import OutputFormat
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media_readers.image_reader import ImageReader
from ouzel.prompts.render import PromptRenderer
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.video import VideoProcessor
from ouzel.store.sql_store import open_store
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest, SpeculationParams
from tests.grammar.tokenizers import saved_for_grammars

MODEL = "org/parrot"
ALIAS = "parrot"
START, END, FAIL, DIE = 256, 257, 258, 259
prompts_heard: list[Sequence[int]] = []
hints_heard: list[SpeculationParams] = []
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def say_what_the_user_said(request: EngineRequest, position: int) -> int:
    prompt = request.prompt_token_ids
    if START not in prompt or END not in prompt:
        return echo(request, position)
    end = len(prompt) - 1 - prompt[::-1].index(END)
    start = end - prompt[:end][::-1].index(START) + len("user\n")
    said = prompt[start:end]
    return said[position] if position < len(said) else END


def create_parrot(options: dict[str, object]) -> FakeEngine:
    return FakeEngine(msgspec.convert(options, FakeOptions), say_what_the_user_said)


def create_attentive_parrot(options: dict[str, object]) -> FakeEngine:
    """Remembers what it was asked. Its engine runs in a thread of the tests' process."""

    def say(request: EngineRequest, position: int) -> int:
        if position == 0:
            prompts_heard.append(request.prompt_token_ids)
        return say_what_the_user_said(request, position)

    return FakeEngine(msgspec.convert(options, FakeOptions), say)


class HintedParrot(FakeEngine):
    """Has every way to guess, and remembers what it was told of guesses; in a thread of the tests' process."""

    @property
    def info(self) -> EngineInfo:
        return msgspec.structs.replace(super().info, has_prompt_lookup=True, has_drafts=True)

    def add(self, request: EngineRequest) -> None:
        hints_heard.append(request.speculation)
        super().add(request)


def create_hinted_parrot(options: dict[str, object]) -> HintedParrot:
    return HintedParrot(msgspec.convert(options, FakeOptions), say_what_the_user_said)


def byte_tokenizer(*more_special_tokens: str) -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer(
        byte_library_tokenizer(*more_special_tokens), {"eos_token": "<|im_end|>"}
    )


def byte_library_tokenizer(*more_special_tokens: str) -> tokenizers.Tokenizer:
    """Token ids 0 to 255 are bytes."""
    alphabet = byte_alphabet()
    library_tokenizer = tokenizers.Tokenizer(
        models.BPE({alphabet[byte]: byte for byte in range(256)}, [])
    )
    library_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library_tokenizer.decoder = decoders.ByteLevel()
    for token in ("<|im_start|>", "<|im_end|>", "|fail|", "|die|", *more_special_tokens):
        is_special = token not in (
            "|fail|",
            "|die|",
        )  # no control tokens, so that a message can hold them
        library_tokenizer.add_tokens([AddedToken(token, special=is_special)])
    return library_tokenizer


def byte_alphabet() -> list[str]:
    """GPT-2's printable stand-ins for bytes: themselves where printable, else the next characters from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [
        chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)
    ]


def create_babbler(options: dict[str, object]) -> EngineCore:
    """Our own engine on pseudo-random logits, for what needs more than one possible answer."""
    return EngineCore(
        FakeRunner(vocab_size=260, num_blocks=1024, max_model_len=256, max_num_batched_tokens=256)
    )


def create_guessing_babbler(options: dict[str, object]) -> EngineCore:
    """The same, which guesses what comes, and as if guesses cost nothing."""
    runner = FakeRunner(
        vocab_size=260, num_blocks=1024, max_model_len=256, max_num_batched_tokens=256
    )
    return EngineCore(runner, speculation=Speculation(costs=StepCosts((1, 100), (1.0, 1.01))))


def create_guided_parrot(options: dict[str, object]) -> EngineCore:
    """Our own engine, with grammars, on a device that wants to say what the user said."""
    tokenizer = saved_for_grammars(byte_library_tokenizer(), 260, END)
    return EngineCore(ParrotRunner(), grammars=GrammarCompiler(tokenizer, timeout_s=60))


def create_guessing_parrot(options: dict[str, object]) -> EngineCore:
    """The same without grammars; it guesses what comes, and as if guesses cost nothing."""
    return EngineCore(
        ParrotRunner(), speculation=Speculation(costs=StepCosts((1, 100), (1.0, 1.01)))
    )


class ParrotRunner(FakeRunner):
    """Prefers the byte that goes on with what the user said, from as far as the context has come with it."""

    def __init__(self) -> None:
        super().__init__(
            vocab_size=260, num_blocks=1024, max_model_len=1024, max_num_batched_tokens=256
        )

    def _logits(self, context: NDArray[np.int64]) -> NDArray[np.float32]:
        text = context.tolist()
        end = len(text) - 1 - text[::-1].index(END)
        start = end - text[:end][::-1].index(START) + len("user\n")
        said, answer = text[start:end], text[end:]
        num_said = next(
            n for n in range(len(said), -1, -1) if answer[len(answer) - n :] == said[:n]
        )
        logits = super()._logits(context)
        logits[said[num_said] if num_said < len(said) else END] = 99
        return logits


def create_swamped(options: dict[str, object]) -> EngineCore:
    """Its grammar compiler never comes to a grammar, as one that has too many others in hand."""
    tokenizer = saved_for_grammars(byte_library_tokenizer(), 260, END)
    grammars = GrammarCompiler(tokenizer, timeout_s=0.01)
    grammars.close()
    return EngineCore(
        FakeRunner(vocab_size=260, num_blocks=1024, max_model_len=256), grammars=grammars
    )


class Panic(BaseException):
    """Native libraries raise such: pyo3's PanicException is no Exception."""


class FragileParser(PlainParser):
    """Stands for a bug of ours."""

    def feed(self, text: str) -> list[Delta]:
        if text == "#":
            raise RuntimeError("a detail for the log")
        if text == "\a":
            raise Panic("a detail for the log")
        return super().feed(text)


def output_format_of(make_parser: Callable[[], Parser]) -> OutputFormat:
    """Everything the model writes goes through that parser."""
    family = Family(
        names=(),
        matches=lambda template: False,
        interleaved=lambda tools, prompt_text: make_parser(),
    )
    return OutputFormat(calls=family)


@dataclass(frozen=True)
class ServerSetup:
    """What a test may choose about its server; without `store_url` the server keeps nothing."""

    options: Mapping[str, object] = field(default_factory=dict)  # of the fake engine
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    config: ServerConfig = field(default_factory=ServerConfig)
    _: KW_ONLY
    has_chat_template: bool = True
    trusts_request_template: bool = False
    tokenizer: HuggingFaceTokenizer = field(default_factory=byte_tokenizer)
    # a function of this module, or of another one by its name before a colon
    engine_factory: str = "create_parrot"
    names: tuple[str, ...] = (MODEL, ALIAS)
    chat_template: str = CHAT_TEMPLATE
    output_format: OutputFormat = field(default_factory=lambda: output_format_of(FragileParser))
    sampling_defaults: SamplingDefaults = field(default_factory=SamplingDefaults)
    store_url: str | None = None
    step_timeout_s: float = 300
    max_tokens_limit: int | None = None
    max_hidden_tokens: int = 0
    shares_prefix_cache: bool = False
    refuses_unknown_tools: bool = False
    has_lenient_formats: bool = False
    reads_bare_calls: bool = True
    image_processor: ImageProcessor | None = None  # of a model that sees
    video_processor: VideoProcessor | None = None  # of one that sees videos, too
    media: MediaConfig = field(default_factory=MediaConfig)
    sentences: SentenceFiles | None = None  # of a model that makes vectors or scores
    cuts_long_texts: bool = False
    max_document_pieces: int = 10_000
    further: tuple[
        "ServerSetup", ...
    ] = ()  # of models beside this one: names, engine and what reads texts

    def engine_spec(self) -> EngineSpec:
        always = {
            "vocab_size": self.tokenizer.vocab_size,
            "failing_token_id": FAIL,
            "fatal_token_id": DIE,
        }
        factory = (
            self.engine_factory
            if ":" in self.engine_factory
            else f"tests.api.serving:{self.engine_factory}"
        )
        return EngineSpec(
            factory=factory, options={**always, **self.options}, heartbeat_every_s=0.25
        )

    def model_on(self, engine: EngineClient) -> ServedModel:
        template = (
            ChatTemplate({"default": self.chat_template}, {}) if self.has_chat_template else None
        )
        return ServedModel(
            names=self.names,
            tokenizer=self.tokenizer,
            renderer=PromptRenderer(
                self.tokenizer,
                template,
                engine.info.max_model_len,
                parsed_marks=self.output_format.prompt_marks,
                trusts_request_template=self.trusts_request_template,
                images=self._images(engine.info.max_model_len),
            ),
            sampling_defaults=self.sampling_defaults,
            engine=engine,
            output_format=self.output_format,
            vocabulary=GrammarVocabulary({}, self.tokenizer.vocab_size),
            max_tokens_limit=self.max_tokens_limit,
            max_hidden_tokens=self.max_hidden_tokens,
            shares_prefix_cache=self.shares_prefix_cache,
            refuses_unknown_tools=self.refuses_unknown_tools,
            has_lenient_formats=self.has_lenient_formats,
            reads_bare_calls=self.reads_bare_calls,
            sentences=self.sentences,
            cuts_long_texts=self.cuts_long_texts,
            max_document_pieces=self.max_document_pieces,
            created=1_700_000_000,
            system_fingerprint=system_fingerprint(MODEL, engine.info, __version__),
        )

    def _images(self, max_model_len: int) -> ImageReader | None:
        processor = self.image_processor
        if processor is None:
            return None
        return ImageReader(processor, MediaLoader(self.media), max_model_len, self.video_processor)


class ThreadHost:
    """Implements `ModelLoader` with engines in threads: what is loaded is a parrot with the name it is given."""

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits
        self.engines: list[EngineClient] = []

    async def serve(self, setup: ServerSetup) -> ServedModel:
        engine = EngineClient(
            setup.engine_spec(),
            in_thread=True,
            max_queued_requests=self._limits.max_queued_requests,
            step_timeout_s=setup.step_timeout_s,
        )
        self.engines.append(engine)
        await engine.start()
        return setup.model_on(engine)

    async def load(self, fields: Mapping[str, object]) -> ServedModel:
        if fields.get("model") == "endless":
            await asyncio.Event().wait()
        if fields.get("model") != "parrot":
            raise InvalidRequest(f"there is no directory {fields.get('model')}", param="model")
        return await self.serve(ServerSetup(names=(str(fields["name"]),)))

    async def unload(self, model: ServedModel) -> None:
        await model.engine.drain(self._limits.drain_timeout_s)
        await model.engine.close()
        model.renderer.close()

    async def close(self) -> None:
        for engine in self.engines:
            await engine.close()


class RunningServer:
    """A server thread with an event loop of its own."""

    def __init__(self, setup: ServerSetup) -> None:
        self._setup = setup
        # With the protocol named, asyncio sets TCP_NODELAY; without, small answers wait for delayed acknowledgements.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.engine: EngineClient
        self.model: ServedModel
        self.catalogue: Catalogue
        self._server: HttpServer
        self._loop: asyncio.AbstractEventLoop

    def client(self) -> httpx.Client:
        """Waits for answers as long as they take: a slow machine is no failure."""
        return httpx.Client(base_url=self.url, timeout=None)

    def shrink_send_buffers(self) -> None:
        """Of connections to come, so that slow clients are noticed early."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def start(self) -> None:
        self._thread.start()
        self._is_ready.wait()
        assert self._server.started, "the server's thread ended at its start"

    def run(self, work: Coroutine[None, None, None]) -> None:
        """In the server's event loop, to its end."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._is_ready.set()

    async def _serve(self) -> None:
        setup, self._loop = self._setup, asyncio.get_running_loop()
        limits = setup.limits
        host = ThreadHost(limits)
        self.model, *further = [await host.serve(each) for each in (setup, *setup.further)]
        self.engine = host.engines[0]
        url = setup.store_url
        store = None if url is None else await open_store(url, max_age_s=3600, max_bytes=2**30)
        self.catalogue = Catalogue(
            [self.model, *further],
            limits,
            setup.config,
            store,
            response_dialect(setup.config.profile),
        )
        app = build_app(ModelChanges(self.catalogue, host))
        self._server = HttpServer(app, limits)
        serving = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started:
            await asyncio.sleep(0.001)
        self._is_ready.set()
        await serving
        for connection in tuple(
            self._server.server_state.connections
        ):  # of clients that do not read their answers
            connection.transport.abort()
        if store is not None:
            await store.close()
        await host.close()
        self.model.renderer.close()


Fields = ParamSpec("Fields")


def _runner_of(
    setup_of: Callable[Fields, ServerSetup],
) -> Callable[Fields, AbstractContextManager[RunningServer]]:
    @contextmanager
    def run(*args: Fields.args, **kwargs: Fields.kwargs) -> Iterator[RunningServer]:
        server = RunningServer(setup_of(*args, **kwargs))
        server.start()
        try:
            yield server
        finally:
            server.stop()

    return run


running_server = _runner_of(ServerSetup)  # takes what ServerSetup takes

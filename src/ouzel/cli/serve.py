"""`ouzel serve`: builds everything, listens, and on SIGTERM or SIGINT drains and leaves with exit status 0.

The model loads in the engine's process while this one reads the tokenizer and the chat template. The address
is taken before that (`listening.py`).
"""

import asyncio
import contextlib
import logging
import shlex
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any  # tasks of any result

import msgspec
import uvicorn
from starlette.types import ASGIApp

import ouzel
from ouzel.api.app import create_app, server_config
from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.listening import Listener
from ouzel.cli.model_directory import LocalModel
from ouzel.cli.options import Options
from ouzel.cli.storing import store_of
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.generation import ServedModel, system_fingerprint
from ouzel.grammar.tokenizer import special_token_ids
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.registry import choose_output_format
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.render import PromptRenderer
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer, load_tokenizer
from ouzel.tokenizer.model_files import read_response_template, sampling_defaults
from ouzel.types import EngineInfo

logger = logging.getLogger(__name__)

_SAME_SIGNAL_S = 1.0
REASONING_FIELDS = {
    "both": ("reasoning_content", "reasoning"),
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning",),
}


class Server(uvicorn.Server):
    """uvicorn's server without its signal handlers: ours drain first, and do not raise the signal again."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(options: Options, local: LocalModel, listener: Listener) -> None:
    """Serves until told to stop. Raises OuzelError when it cannot start."""
    stopping, hurrying = stop_signals()
    store = await store_of(options.store)
    engine = EngineClient(
        engine_spec(options, local),
        in_thread=not options.engine.engine_process,
        max_queued_requests=options.limits.max_queued_requests,
    )
    try:
        loading = asyncio.create_task(load_served_model(options, local, engine))
        await first_of(loading, asyncio.create_task(stopping.wait()))
        if stopping.is_set():
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
            return
        app = create_app(loading.result(), options.limits, options.server, store)
        await run_server(options, loading.result(), app, listener, stopping=stopping, hurrying=hurrying)
    finally:
        await engine.close()
        if store is not None:
            await store.close()


def engine_spec(options: Options, local: LocalModel) -> EngineSpec:
    """Names the factory rather than importing it: only the engine's process loads OpenVINO."""
    model = msgspec.structs.replace(options.model, model=str(local.directory))
    return EngineSpec(
        factory="ouzel.cli.engines:openvino_engine",
        options={"model": msgspec.to_builtins(model), "engine": msgspec.to_builtins(options.engine)},
        log_level=options.server.log_level,
    )


async def load_served_model(options: Options, local: LocalModel, engine: EngineClient) -> ServedModel:
    """Starts the engine and, while it loads, reads what turns requests into tokens and back."""
    starting = asyncio.create_task(engine.start())
    await asyncio.sleep(0)  # let it start
    try:
        tokenizer = await asyncio.to_thread(load_tokenizer, local.directory)
        chat_template = await asyncio.to_thread(ChatTemplate.load, local.directory, options.model.chat_template)
        output_format = choose_output_format(
            "\n".join(chat_template.sources.values()) if chat_template else "",
            tool_parser=options.model.tool_parser,
            reasoning_parser=options.model.reasoning_parser,
            response_template=read_response_template(local.directory),
        )
        info = await starting
    finally:
        if not starting.done():
            starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    log_engine(info)
    names = options.model.served_model_name or (local.name,)
    return ServedModel(
        names=names,
        tokenizer=tokenizer,
        renderer=PromptRenderer(
            tokenizer,
            chat_template,
            info.max_model_len,
            info.vocab_size,
            trusts_request_template=options.model.trust_request_chat_template,
        ),
        sampling_defaults=sampling_defaults(local.directory),
        engine=engine,
        output_format=output_format,
        vocabulary=grammar_vocabulary(tokenizer),
        max_tokens_limit=options.limits.max_tokens_limit,
        guides_tools=options.model.enable_tool_guided_generation,
        reasoning_fields=REASONING_FIELDS[options.model.reasoning_field],
        created=int(time.time()),
        system_fingerprint=system_fingerprint(names[0], info, ouzel.__version__),
    )


def grammar_vocabulary(tokenizer: HuggingFaceTokenizer) -> GrammarVocabulary:
    added = [
        {"id": token_id, "content": token.content, "special": token.special}
        for token_id, token in tokenizer.added_tokens.items()
    ]
    return GrammarVocabulary(
        special_ids=special_token_ids({"added_tokens": added}),
        vocab_size=tokenizer.vocab_size,
        eos_token_ids=tokenizer.eos_token_ids,
    )


async def run_server(
    options: Options,
    model: ServedModel,
    app: ASGIApp,
    listener: Listener,
    *,
    stopping: asyncio.Event,
    hurrying: asyncio.Event,
) -> None:
    """Listens until `stopping`, then drains; `hurrying` cuts that short."""
    server = Server(server_config(app, options.limits, listener.tls))
    serving = asyncio.create_task(server.serve(sockets=[listener.socket]))
    await first_of(serving, asyncio.create_task(server.listening.wait()))
    if serving.done() or listener.socket.fileno() < 0:  # another process took the port while the model loaded
        await server.lifespan.shutdown()
        raise InvalidOption(f"cannot listen on {listener.address}: it is in use")
    if listener.unix is not None and not listener.unix.is_ours():
        server.should_exit = True
        await serving
        raise InvalidOption(f"cannot listen on {listener.address}: another server has taken it")
    announce(model, listener, needs_key=bool(options.server.api_key))
    await first_of(serving, asyncio.create_task(stopping.wait()))
    drain_timeout_s = options.limits.drain_timeout_s
    logger.info("stopping: waiting up to %.0f s for running requests", drain_timeout_s)
    hurry = asyncio.create_task(hurrying.wait())
    draining = asyncio.create_task(model.engine.drain(drain_timeout_s))
    await first_of(draining, hurry)
    if not draining.done():
        logger.info("stopping at once")
        draining.cancel()
        await model.engine.drain(0)
    server.should_exit = True
    await first_of(serving, hurry)
    server.force_exit = True
    await serving
    if hurry.done():
        await server.lifespan.shutdown()  # uvicorn leaves it out when it is forced


async def first_of(*tasks: asyncio.Task[Any]) -> None:
    """Waits until one of them is done."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


def stop_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Events for the first SIGTERM or SIGINT, and for a later one that asks to hurry.

    A runner in between (uv, a shell) may pass on the signal that we already have: what follows at once is the same.
    """
    stopping, hurrying = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    first_at = 0.0

    def note() -> None:
        nonlocal first_at
        if not stopping.is_set():
            first_at = loop.time()
            stopping.set()
        elif loop.time() - first_at > _SAME_SIGNAL_S:
            hurrying.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, note)
    return stopping, hurrying


def log_engine(info: EngineInfo) -> None:
    logger.info(
        "%s on %s: weights %s, inference %s, KV cache %s with room for %d tokens, context %d tokens, loaded in %.1f s",
        info.model_type,
        info.device,
        info.weights,
        info.precision,
        info.kv_cache_dtype,
        info.num_blocks * info.block_size,
        info.max_model_len,
        info.load_s,
    )


def announce(model: ServedModel, listener: Listener, *, needs_key: bool) -> None:
    """Tells a person where it listens, with a line to try at once."""
    url = f"{listener.url}/v1"
    if model.renderer.chat_template is None:
        path, body = "completions", {"model": model.names[0], "prompt": "Once upon a time", "max_tokens": 32}
    else:
        path, body = "chat/completions", {"model": model.names[0], "messages": [{"role": "user", "content": "Hello!"}]}
    command = ["curl", f"{url}/{path}", "-H 'Content-Type: application/json'"]
    where, hints = url, []
    if listener.unix is not None:
        where += f" on the socket {listener.address}"
        command.append(f"--unix-socket {shlex.quote(listener.address)}")
    if needs_key:
        command.append('-H "Authorization: Bearer $API_KEY"')  # the shell's variable: keys are not shown
    if listener.tls is not None:
        hints.append("  (curl needs --cacert FILE where it does not know who issued the certificate)\n")
    command.append(f"-d {shlex.quote(msgspec.json.encode(body).decode())}")
    sys.stdout.write(f"\nOuzel {ouzel.__version__} serves {model.names[0]} at {where}\n\n  {' '.join(command)}\n")
    sys.stdout.write("".join([*hints, "\n"]))
    sys.stdout.flush()

"""Stands in for `vllm serve --enable-scale-out`: endpoints with tokens in and tokens out.

The server refuses bodies with a field that vLLM 0.33 does not have, so a wrong name fails a test.
"""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.backends.vllm.engines import model_directory
from tests.backends.vllm.stand_in.vllm.engine import BLOCK_SIZE, NUM_BLOCKS, LLMEngine
from tests.backends.vllm.stand_in.vllm.exceptions import VLLMError
from tests.backends.vllm.stand_in.vllm.names import VERSION, EngineArgs, list_fields
from tests.backends.vllm.stand_in.vllm.sampling_params import (
    RequestOutputKind,
    SamplingParams,
    StructuredOutputsParams,
)


class VllmServer:
    """A server with the stand-in's engine. `bodies` has all requests, `aborted` the aborted ids."""

    def __init__(
        self, *, api_key: str = "", has_tokenizer: bool = True, port: int = 0, **arguments: object
    ) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.aborted: list[str] = []
        self.is_healthy = True
        self._api_key = api_key
        self._has_tokenizer = has_tokenizer
        always = {
            "model": model_directory(),
            "enable_prefix_caching": True,
            "kv_cache_dtype": "auto",
        }
        args = EngineArgs(**always | arguments)
        self._queries = self._hits = 0
        self._engine = LLMEngine(args, [lambda config, index: self])
        self._queues: dict[str, asyncio.Queue[Any]] = {}
        self._stepping: asyncio.Task[None] | None = None
        self._socket = socket.create_server(("127.0.0.1", port), reuse_port=False)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        routes = [
            Route("/health", self._health),
            Route("/version", self._version),
            Route("/metrics", self._metrics),
            Route("/v1/models", self._models),
            Route("/inference/v1/generate", self._generate, methods=["POST"]),
            Route("/inference/v1/abort_requests", self._abort, methods=["POST"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), log_config=None, lifespan="off", timeout_graceful_shutdown=0
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()

    @property
    def num_open(self) -> int:
        return len(self._queues)

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        self._queries += scheduler_stats.prefix_cache_stats.queries
        self._hits += scheduler_stats.prefix_cache_stats.hits

    def _serve(self) -> None:
        asyncio.run(self._serve_and_close())

    async def _serve_and_close(self) -> None:
        """Closes the connections that clients have not closed when the server stops."""
        await self._server.serve(sockets=[self._socket])
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # the loop closes their sockets

    async def _health(self, request: Request) -> Response:
        return Response(status_code=200 if self.is_healthy else 503)

    async def _version(self, request: Request) -> Response:
        return JSONResponse({"version": VERSION})

    async def _metrics(self, request: Request) -> Response:
        labels = 'engine="0",model_name="parrot"'
        lines = [
            "# HELP vllm:num_requests_running Number of requests in model execution batches.",
            f"vllm:num_requests_running{{{labels}}} {float(self.num_open)}",
            f"vllm:num_requests_waiting{{{labels}}} 0.0",
            f"vllm:kv_cache_usage_perc{{{labels}}} 0.25",
            f"vllm:prefix_cache_queries_total{{{labels}}} {float(self._queries)}",
            f"vllm:prefix_cache_hits_total{{{labels}}} {self._hits:.1e}",
            f"vllm:num_preemptions_total{{{labels}}} 3.0",
            f"vllm:num_requests_swapped{{{labels}}} 1e+",  # no number
            f"vllm:num_requests_running{{{labels}}} 1e999",
            f'vllm:cache_config_info{{block_size="{BLOCK_SIZE}",cache_dtype="fp8",'
            f'num_gpu_blocks="{NUM_BLOCKS}"}} 1.0',
        ]
        return PlainTextResponse("\n".join(lines) + "\n")

    async def _models(self, request: Request) -> Response:
        if not self._is_allowed(request):
            return JSONResponse({"error": "Unauthorized"}, status_code=401)
        length = self._engine.vllm_config.model_config.max_model_len
        return JSONResponse({"object": "list", "data": [{"id": "parrot", "max_model_len": length}]})

    async def _abort(self, request: Request) -> Response:
        names = (await request.json())["request_ids"]
        self.aborted += names
        self._engine.abort_request(names)
        return Response()

    async def _generate(self, request: Request) -> Response:
        if not self._is_allowed(request):
            return JSONResponse({"error": "Unauthorized"}, status_code=401)
        body = await request.json()
        self.bodies.append(body)
        name = f"generate-tokens-{body.get('request_id', 'random')}"
        try:
            self._add(name, body)
        except (VLLMError, ValueError, TypeError) as error:
            facts = {"message": str(error), "type": "BadRequestError", "param": None, "code": 400}
            assert facts.keys() == list_fields("ErrorInfo")
            return JSONResponse({"error": facts}, status_code=400)
        if body.get("stream"):
            return StreamingResponse(self._stream(name, body), media_type="text/event-stream")
        outputs = [output async for output in self._outputs(name)]
        return JSONResponse(_whole(name, outputs))

    def _is_allowed(self, request: Request) -> bool:
        return (
            not self._api_key or request.headers.get("authorization") == f"Bearer {self._api_key}"
        )

    def _add(self, name: str, body: dict[str, Any]) -> None:
        for fields, allowed in (
            (body, list_fields("GenerateRequest")),
            (body.get("stream_options", {}), list_fields("StreamOptions")),
        ):
            if unknown := fields.keys() - allowed:
                raise TypeError(f"unknown fields: {unknown}")
        fields = dict(body["sampling_params"])
        assert not any(name.startswith("_") for name in fields)
        if (form := fields.pop("structured_outputs", None)) is not None:
            if not self._has_tokenizer:
                raise ValueError(
                    "Structured outputs requires a tokenizer so it can't be used with "
                    "'skip_tokenizer_init'"
                )
            fields["structured_outputs"] = StructuredOutputsParams(**form)
        if (bias := fields.get("logit_bias")) is not None:
            fields["logit_bias"] = {int(token_id): value for token_id, value in bias.items()}
        params = SamplingParams(**fields, output_kind=RequestOutputKind.DELTA)
        prompt = {
            "type": "token",
            "prompt_token_ids": body["token_ids"],
            "cache_salt": body.get("cache_salt", ""),
        }
        self._engine.add_request(name, prompt, params, priority=body.get("priority", 0))
        self._queues[name] = asyncio.Queue()
        if self._stepping is None or self._stepping.done():
            self._stepping = asyncio.create_task(self._step())

    async def _step(self) -> None:
        try:
            while self._engine.has_unfinished_requests():
                for output in self._engine.step():
                    self._queues[output.request_id].put_nowait(output)
                await asyncio.sleep(0.001)
        finally:  # a fatal error of the engine ends the server
            if self._engine.has_unfinished_requests():
                self._server.should_exit = self._server.force_exit = True

    async def _outputs(self, name: str) -> AsyncIterator[Any]:
        try:
            while True:
                output = await self._queues[name].get()
                yield output
                if output.finished:
                    return
        finally:
            self._engine.abort_request([name])
            del self._queues[name]

    async def _stream(self, name: str, body: dict[str, Any]) -> AsyncIterator[str]:
        num_cached = 0
        async for output in self._outputs(name):
            num_cached = output.num_cached_tokens
            if output.outputs[0].finish_reason == "error":
                error = {
                    "message": "Internal server error",
                    "type": "InternalServerError",
                    "param": None,
                    "code": 500,
                }
                yield f"data: {json.dumps({'error': error})}\n\n"
                break
            choice = _choice(output)
            assert choice.keys() <= list_fields("GenerateStreamChoiceBase") | {"logprobs"}
            chunk = {
                "request_id": name,
                "usage": None,
                "output_mode": "tokens",
                "choices": [choice],
            }
            yield f"data: {json.dumps(chunk)}\n\n"
        if body.get("stream_options", {}).get("include_usage"):
            usage = {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": num_cached}}
            assert usage.keys() <= list_fields("UsageInfo")
            yield f"data: {json.dumps({'request_id': name, 'choices': [], 'usage': usage})}\n\n"
        yield "data: [DONE]\n\n"


def _choice(output: Any) -> dict[str, Any]:
    [new] = output.outputs
    logprobs = None
    if new.logprobs is not None:
        logprobs = {
            "content": [_position(t, at) for t, at in zip(new.token_ids, new.logprobs, strict=True)]
        }
    return {
        "index": 0,
        "finish_reason": new.finish_reason,
        "stop_reason": new.stop_reason,
        "token_ids": new.token_ids,
        "logprobs": logprobs,
    }


def _position(token_id: int, at: Any) -> dict[str, Any]:
    top = [
        {"token_id": each, "logprob": entry.logprob, "rank": entry.rank}
        for each, entry in at.items()
    ]
    return {**top[0], "top_logprobs": top}


def _whole(name: str, outputs: list[Any]) -> dict[str, Any]:
    choices = [_choice(output) for output in outputs]
    positions = [
        position for choice in choices for position in (choice["logprobs"] or {}).get("content", [])
    ]
    scored = next((output.prompt_logprobs for output in outputs if output.prompt_logprobs), None)
    answer = {
        "request_id": name,
        "choices": [
            choices[-1]
            | {
                "token_ids": [token_id for choice in choices for token_id in choice["token_ids"]],
                "logprobs": {"content": positions} if positions else None,
            }
        ],
        "usage": {
            "prompt_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": outputs[-1].num_cached_tokens},
        },
        "prompt_logprobs": scored
        and [
            at
            and {each: {"logprob": entry.logprob, "rank": entry.rank} for each, entry in at.items()}
            for at in scored
        ],
    }
    assert answer.keys() <= list_fields("GenerateResponseBase") | {"choices"}
    return answer


@contextmanager
def vllm_server(**facts: Any) -> Iterator[VllmServer]:
    server = VllmServer(**facts)
    server.start()
    try:
        yield server
    finally:
        server.stop()

"""Checks a remote vLLM server and reads its abilities and statistics.

Abilities that depend on the server's options are found by requests for one token each.
"""

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from ouzel.backends.vllm.sampling_fields import VERSION, Abilities
from ouzel.client.base import UNREADABLE, Answer, ApiClient, ApiFailure, read_failure
from ouzel.types.engine_info import EngineInfo, EngineStats

logger = logging.getLogger(__name__)

Content = TypeVar("Content")

GENERATE = "/inference/v1/generate"
ABORT = "/inference/v1/abort_requests"
_OK, _BAD_REQUEST, _UNPROCESSABLE = 200, 400, 422
_OVERLOADED = (429, 503)
_LOOK_EVERY_S = 1.0
_LOOK_TIMEOUT_S = 10.0  # limit for answers that need no computation
_GRAMMAR = "start: <[0]>\n"  # the token 0: only guidance reads this form
_SAMPLE = re.compile(r"^(vllm:\w+)(?:\{[^}]*\})? ([-+.\deE]+)$", re.MULTILINE)
_CACHE_CONFIG = re.compile(r"^vllm:cache_config_info\{([^}]*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about the remote server that Ouzel knows at its start."""

    url: str  # address for people
    model_type: str
    vocab_size: int
    weights: str  # the quantisation, or else the data type
    dtype: str
    max_num_seqs: int  # requests that count as running; others wait here
    max_model_len: int | None = None  # a limit below the server's; None: the server's
    has_priorities: bool = False
    wait_s: float = 600.0


class _Model(msgspec.Struct):
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Model] = []


class _Version(msgspec.Struct):
    version: str = "unknown"


class RemoteServer:
    """Asks a remote vLLM server for its health, abilities and metrics."""

    def __init__(self, facts: ServerFacts, client: ApiClient) -> None:
        self._facts = facts
        self._client = client

    async def wait(self, tell: Callable[[str], None]) -> None:
        """Waits until the server is healthy. Raises ApiFailure if that takes too long."""
        started = time.monotonic()
        while True:
            tell(f"waiting for {self._facts.url}")
            try:
                await self.check()
            except ApiFailure as failure:
                waited_s = time.monotonic() - started
                if waited_s >= self._facts.wait_s:
                    raise ApiFailure(
                        f"no engine has answered for {waited_s:.0f} s: {failure}"
                    ) from failure
            else:
                return
            await asyncio.sleep(_LOOK_EVERY_S)

    async def check(self) -> None:
        """Raises ApiFailure if the server does not answer or is not healthy."""
        answer = await self._get("/health")
        if answer.status != _OK:
            raise ApiFailure(
                f"{self._facts.url} is not healthy: {read_failure(answer)}",
                http_status=answer.status,
            )

    async def look(self) -> tuple[EngineInfo, Abilities]:
        """Reads the server's properties. Raises ApiFailure if it cannot be an engine."""
        started = time.monotonic()
        version = await self._version()
        context = await self._max_model_len()
        abilities = await self._abilities()
        cache = await self._cache_config()
        facts = self._facts
        info = EngineInfo(
            backend="vllm",
            model_type=facts.model_type,
            device=facts.url,
            weights=facts.weights,
            precision=f"{facts.dtype} by vLLM {version}",
            kv_cache_dtype=cache.get("cache_dtype", "unknown"),
            vocab_size=facts.vocab_size,
            max_model_len=context,
            block_size=_number(cache.get("block_size")) or 16,
            num_blocks=_number(cache.get("num_gpu_blocks")),
            max_num_seqs=facts.max_num_seqs,
            max_num_batched_tokens=context,
            load_s=time.monotonic() - started,
            has_grammars=abilities.grammars,
            has_beam_search=False,
            confirms_requests=True,
        )
        return info, abilities

    async def stats(self, info: EngineInfo) -> EngineStats:
        """Reads the metrics, which count the requests of all its clients. Raises ApiFailure."""
        answer = await self._get("/metrics")
        sums: dict[str, float] = {}
        if answer.status == _OK:
            for name, value in _SAMPLE.findall(answer.body.decode(errors="replace")):
                sums[name] = sums.get(name, 0.0) + _amount(value)
        return EngineStats(
            num_running=int(sums.get("vllm:num_requests_running", 0)),
            num_waiting=int(sums.get("vllm:num_requests_waiting", 0)),
            num_used_blocks=round(
                min(sums.get("vllm:kv_cache_usage_perc", 0.0), 1.0) * info.num_blocks
            ),
            num_blocks=info.num_blocks,
            num_prefix_query_tokens=int(sums.get("vllm:prefix_cache_queries_total", 0)),
            num_prefix_hit_tokens=int(sums.get("vllm:prefix_cache_hits_total", 0)),
            num_preemptions=int(sums.get("vllm:num_preemptions_total", 0)),
        )

    async def _get(self, path: str) -> Answer:
        """Asks for a path. Raises ApiFailure also if the answer does not come in time."""
        try:
            async with asyncio.timeout(_LOOK_TIMEOUT_S):
                return await self._client.ask("GET", path)
        except TimeoutError as error:
            raise ApiFailure(
                f"{self._facts.url}{path} has not answered for {_LOOK_TIMEOUT_S:.0f} s"
            ) from error

    async def _version(self) -> str:
        answer = await self._get("/version")
        version = _read(answer, _Version).version if answer.status == _OK else "unknown"
        if not version.startswith(VERSION):
            logger.warning("%s is vLLM %s; Ouzel supports %sx", self._facts.url, version, VERSION)
        return version

    async def _max_model_len(self) -> int:
        answer = await self._get("/v1/models")
        if answer.status != _OK:
            raise self._refused("/v1/models", answer)
        models = _read(answer, _Models).data
        theirs = models[0].max_model_len if models else None
        if theirs is None:
            raise ApiFailure(f"{self._facts.url}/v1/models does not report max_model_len")
        ours = self._facts.max_model_len
        if ours is not None and ours > theirs:
            raise ApiFailure(
                f"max_model_len: must be <= {theirs}, the limit of {self._facts.url}, given {ours}"
            )
        return ours or theirs

    async def _abilities(self) -> Abilities:
        answer = await self._try(self._facts.vocab_size - 1)
        if answer.status != _OK:
            raise self._refused(GENERATE, answer)
        if (await self._try(self._facts.vocab_size)).status == _OK:
            logger.warning(
                "%s accepts tokens that this model does not have: is it the same model?",
                self._facts.url,
            )
        return Abilities(
            # vLLM 0.33 accepts priorities even when it ignores them.
            priorities=self._facts.has_priorities,
            grammars=await self._takes(structured_outputs={"grammar": _GRAMMAR}),
            reasoning_budgets=await self._takes(thinking_token_budget=1),
            token_bans=False,  # over HTTP only as texts
        )

    async def _takes(self, **fields: object) -> bool:
        answer = await self._try(0, **fields)
        if answer.status in (_OK, _BAD_REQUEST, _UNPROCESSABLE):
            return answer.status == _OK
        raise self._refused(GENERATE, answer)

    async def _try(self, token_id: int, **fields: object) -> Answer:
        """Asks for one token after `token_id`; tries again while the server is overloaded."""
        always = {"max_tokens": 1, "temperature": 0.0, "detokenize": False}
        body = msgspec.json.encode(
            {"token_ids": [token_id], "sampling_params": always | fields, "stream": False}
        )
        started = time.monotonic()
        while True:
            answer = await self._client.ask("POST", GENERATE, body)
            if answer.status not in _OVERLOADED or time.monotonic() - started >= self._facts.wait_s:
                return answer
            await asyncio.sleep(_LOOK_EVERY_S)

    def _refused(self, path: str, answer: Answer) -> ApiFailure:
        hints = {
            404: " (vllm serve needs --enable-scale-out)",
            401: " (--engine-api-key)",
            403: " (--engine-api-key)",
        }
        hint = hints.get(answer.status, "")
        return ApiFailure(
            f"{self._facts.url}{path}: {read_failure(answer)}{hint}", http_status=answer.status
        )

    async def _cache_config(self) -> dict[str, str]:
        answer = await self._get("/metrics")
        found = (
            _CACHE_CONFIG.search(answer.body.decode(errors="replace"))
            if answer.status == _OK
            else None
        )
        return dict(_LABEL.findall(found[1])) if found else {}


def _amount(text: str) -> float:
    """Returns a finite number from a metric; 0 for anything else."""
    try:
        amount = float(text)
    except ValueError:
        return 0.0
    return amount if math.isfinite(amount) else 0.0


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


def _read(answer: Answer, kind: type[Content]) -> Content:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except UNREADABLE as error:
        raise ApiFailure(f"the answer cannot be read: {error}") from error

"""Defines LLMEngine, with vLLM's methods, a scheduler and a prefix cache, and without a model."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from .exceptions import EngineDeadError, VLLMValidationError
from .names import METHODS, CompletionOutput, EngineArgs, Logprob, RequestStateStats, SchedulerStats
from .sampling_params import RequestOutputKind, SamplingParams

START, END = 256, 257
# A prompt that begins with FAILING fails. A prompt that begins with FATAL ends the engine.
FAILING, FATAL = 258, 259
BLOCK_SIZE, NUM_BLOCKS, MAX_MODEL_LEN, VOCAB_SIZE = 16, 1000, 4096, 2048


class Request:
    def __init__(
        self, request_id: str, prompt: dict[str, Any], params: SamplingParams, priority: int
    ) -> None:
        self.request_id = request_id
        self.prompt_token_ids: list[int] = prompt["prompt_token_ids"]
        self.salt = prompt.get("cache_salt", "")
        self.params = params
        self.priority = priority
        self.output_token_ids: list[int] = []
        self.matcher: Any = None
        self.num_cached_tokens = 0
        self.metrics: Any = RequestStateStats(queued_ts=time.monotonic())

    def next_token(self) -> int:
        """Returns the next token of the user's last message, or of the prompt."""
        prompt, position = self.prompt_token_ids, len(self.output_token_ids)
        try:
            end = len(prompt) - 1 - prompt[::-1].index(END)
            start = end - prompt[:end][::-1].index(START) + len("user\n")
        except ValueError:
            return prompt[position % len(prompt)]
        message = prompt[start:end]
        return message[position] if position < len(message) else END


class Renderer:
    def render_cmpl(
        self,
        prompts: Any,
        tok_params: Any = None,
        *,
        prompt_extras: Any = None,
        skip_mm_cache: bool = False,
    ) -> list[dict[str, Any]]:
        return [{"type": "token", **prompt} for prompt in prompts]


class Core:
    def __init__(self, engine: "LLMEngine") -> None:
        self._engine = engine

    def shutdown(self, timeout: float | None = None) -> None:
        self._engine.is_shut_down = True


class LLMEngine:
    """An engine that records all its requests in `requests`, for tests in the same process."""

    requests: ClassVar[list[Request]] = []

    def __init__(self, args: EngineArgs, stat_loggers: Iterable[Any]) -> None:
        self.args = args
        self.vllm_config = _make_config(args)
        self.renderer = Renderer()
        self.engine_core = Core(self)
        self.is_shut_down = False
        self._loggers = [factory(self.vllm_config, 0) for factory in stat_loggers]
        self._waiting: list[Request] = []
        self._running: list[Request] = []
        self._cached: set[tuple[str, tuple[int, ...]]] = set()
        self._tokenizer = _grammar_tokenizer(args.model)

    @classmethod
    def from_engine_args(
        cls,
        engine_args: EngineArgs,
        usage_context: Any,
        stat_loggers: Any,
        enable_multiprocessing: bool = False,
    ) -> "LLMEngine":
        if engine_args.model == "broken":
            raise ValueError("no such architecture")
        return cls(engine_args, stat_loggers)

    def add_request(
        self, request_id: str, prompt: Any, params: SamplingParams, *, priority: int = 0
    ) -> str:
        assert "priority" in METHODS["LLMEngine"]["add_request"]
        assert prompt["type"] == "token", "raw prompts are deprecated in vLLM"
        request = Request(request_id, prompt, params, priority)
        _verify(request, self.args)
        if params.structured_outputs is not None:
            request.matcher = self._matcher(params.structured_outputs.grammar)
        self._waiting.append(request)
        LLMEngine.requests.append(request)
        return request_id

    def abort_request(self, request_ids: list[str], internal: bool = False) -> None:
        self._waiting = [
            request for request in self._waiting if request.request_id not in request_ids
        ]
        self._running = [
            request for request in self._running if request.request_id not in request_ids
        ]

    def has_unfinished_requests(self) -> bool:
        return bool(self._waiting or self._running)

    def step(self) -> list[Any]:
        queries = hits = 0
        self._waiting.sort(key=lambda request: request.priority)
        while self._waiting and len(self._running) < self.args.max_num_seqs:
            request = self._waiting.pop(0)
            request.metrics.scheduled_ts = time.monotonic()
            request.num_cached_tokens = self._hit(request)
            queries += len(request.prompt_token_ids)
            hits += request.num_cached_tokens
            self._running.append(request)
        if any(request.prompt_token_ids[0] == FATAL for request in self._running):
            raise EngineDeadError("EngineCore encountered an issue.")
        outputs = [self._advance(request) for request in self._running]
        self._running = [request for request in self._running if not outputs_end(outputs, request)]
        self._record(queries, hits)
        return outputs

    def _record(self, queries: int, hits: int) -> None:
        used = sum(1 + len(request.prompt_token_ids) // BLOCK_SIZE for request in self._running)
        stats = SchedulerStats(
            num_running_reqs=len(self._running),
            num_waiting_reqs=len(self._waiting),
            kv_cache_usage=used / NUM_BLOCKS,
            prefix_cache_stats=SimpleNamespace(queries=queries, hits=hits),
        )
        for logger in self._loggers:
            logger.record(
                stats, SimpleNamespace(num_preempted_reqs=0), mm_cache_stats=None, engine_idx=0
            )

    def _hit(self, request: Request) -> int:
        """Returns the number of cached tokens in full blocks. Caches the prompt's blocks."""
        prompt, num_hit = tuple(request.prompt_token_ids), 0
        is_read = request.params.prompt_logprobs is None and self.args.enable_prefix_caching
        for end in range(BLOCK_SIZE, len(prompt), BLOCK_SIZE):
            key = (request.salt, prompt[:end])
            if is_read and key in self._cached and num_hit == end - BLOCK_SIZE:
                num_hit = end
            self._cached.add(key)
        return num_hit

    def _matcher(self, grammar: str) -> Any:
        import llguidance  # noqa: PLC0415  the test's interpreter for --engine-python lacks it

        text = llguidance.grammar_from("grammar", grammar)
        error = llguidance.LLMatcher.validate_grammar(text, self._tokenizer)
        if error:
            raise VLLMValidationError(f"Grammar error: {error}")
        return llguidance.LLMatcher(self._tokenizer, text)

    def _advance(self, request: Request) -> Any:
        params, is_first = request.params, not request.output_token_ids
        token_id = self._draw(request)
        request.output_token_ids.append(token_id)
        num_tokens = len(request.output_token_ids)
        reason = stop_reason = None
        if token_id in (params.stop_token_ids or ()) and num_tokens > params.min_tokens:
            reason, stop_reason = "stop", token_id
        elif request.prompt_token_ids[0] == FAILING and num_tokens > 1:
            reason = "error"
        elif num_tokens >= min(params.max_tokens, self._max_tokens(request)):
            reason = "length"
        if is_first:
            request.metrics.first_token_ts = time.monotonic()
        assert params.output_kind is RequestOutputKind.DELTA
        new = CompletionOutput(
            index=0,
            text="",
            token_ids=[token_id],
            logprobs=[_logprobs(token_id, params)] if params.logprobs is not None else None,
            finish_reason=reason,
            stop_reason=stop_reason,
        )
        prompt_logprobs = None
        if is_first and params.prompt_logprobs is not None:
            prompt_logprobs = [
                None,
                *(_prompt_logprobs(each, params) for each in request.prompt_token_ids[1:]),
            ]
        return SimpleNamespace(
            request_id=request.request_id,
            outputs=[new],
            prompt_logprobs=prompt_logprobs,
            num_cached_tokens=request.num_cached_tokens,
            metrics=request.metrics,
            finished=reason is not None,
        )

    def _max_tokens(self, request: Request) -> int:
        return int(self.vllm_config.model_config.max_model_len) - len(request.prompt_token_ids)

    def _draw(self, request: Request) -> int:
        params = request.params
        allowed = [request.next_token(), *range(VOCAB_SIZE)]
        banned: set[int] = {
            words[-1] for words in params._bad_words_token_ids or () if len(words) == 1
        }
        if len(request.output_token_ids) < params.min_tokens:
            banned |= set(params.stop_token_ids or ())
        if params.allowed_token_ids is not None:
            allowed = [each for each in allowed if each in params.allowed_token_ids]
        if params.logit_bias:
            allowed.sort(key=lambda each: -params.logit_bias.get(each, 0.0))
        if request.matcher is not None:
            bias = request.matcher.compute_logit_bias()
            allowed = [each for each in allowed if each < len(bias) and bias[each]]
        token_id: int = next(each for each in allowed if each not in banned)
        if request.matcher is not None:
            request.matcher.consume_token(token_id)
        return token_id


def outputs_end(outputs: list[Any], request: Request) -> bool:
    return any(output.request_id == request.request_id and output.finished for output in outputs)


def _verify(request: Request, args: EngineArgs) -> None:
    params, max_logprobs = request.params, args.max_logprobs
    for name in ("logprobs", "prompt_logprobs"):
        value = getattr(params, name)
        if value is not None and 0 <= max_logprobs < value:
            raise VLLMValidationError(f"Requested {name} of {value}", parameter=name, value=value)
    if params.thinking_token_budget is not None and args.reasoning_config is None:
        raise VLLMValidationError(
            "thinking_token_budget is set but reasoning_config is not configured."
        )
    if any(not 0 <= token_id < VOCAB_SIZE for token_id in request.prompt_token_ids):
        raise ValueError("Token id is out of vocabulary")
    if len(request.salt) > 128 or set(request.salt) & set("@/\\\0"):
        raise VLLMValidationError(
            "Parameter 'cache_salt' must be at most 128 characters", parameter="cache_salt"
        )


def _logprobs(token_id: int, params: SamplingParams) -> dict[int, Logprob]:
    """Returns the sampled token first, and then the requested tokens.

    Ranks are numbered as vLLM's processor of logprobs numbers them.
    """
    shown = params.logprob_token_ids or list(range(7, 7 + params.logprobs))
    ranks = dict(zip(shown, range(1, len(shown) + 1), strict=True))
    true_rank = ranks.get(token_id, len(shown) + 1)
    first = {token_id: Logprob(logprob=-float(true_rank), rank=true_rank)}
    return first | {each: Logprob(logprob=-float(rank), rank=rank) for each, rank in ranks.items()}


def _prompt_logprobs(token_id: int, params: SamplingParams) -> dict[int, Logprob]:
    likely = {
        each: Logprob(logprob=-0.5, rank=place + 1)
        for place, each in enumerate(range(params.prompt_logprobs))
    }
    return {token_id: Logprob(logprob=-9.0, rank=99)} | {
        each: it for each, it in likely.items() if each != token_id
    }


def _make_config(args: EngineArgs) -> SimpleNamespace:
    length = args.max_model_len or MAX_MODEL_LEN
    dtype = {"auto": "bfloat16"}.get(args.dtype, args.dtype)
    return SimpleNamespace(
        model_config=SimpleNamespace(
            hf_config=SimpleNamespace(model_type="parrot"),
            quantization=None,
            dtype=f"torch.{dtype}",
            max_model_len=length,
            get_vocab_size=lambda: VOCAB_SIZE,
        ),
        cache_config=SimpleNamespace(
            block_size=BLOCK_SIZE, num_gpu_blocks=NUM_BLOCKS, cache_dtype=args.kv_cache_dtype
        ),
        scheduler_config=SimpleNamespace(
            max_num_seqs=args.max_num_seqs, max_num_batched_tokens=args.max_num_batched_tokens
        ),
        device_config=SimpleNamespace(device_type="cuda"),
    )


def _grammar_tokenizer(model: str) -> Any:
    try:
        import llguidance  # noqa: PLC0415  may be missing
    except ImportError:
        return None
    path = Path(model) / "tokenizer.json"
    if not path.is_file():
        return None
    content = json.loads(path.read_text())
    end = next(
        (token["id"] for token in content["added_tokens"] if token["content"] == "<|im_end|>"), None
    )
    return llguidance.LLTokenizer(json.dumps(content), n_vocab=VOCAB_SIZE, eos_token=end)

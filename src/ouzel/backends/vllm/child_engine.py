"""Implements `Engine` with vLLM's synchronous `LLMEngine` in the child process.

This process is vLLM's engine core; only its tensor-parallel workers are further processes. It
imports nothing but msgspec and vLLM, because vLLM's interpreter has no other package that Ouzel
needs.
"""

import logging
import os
import time
from typing import Any  # vLLM is not installed where types are checked

import msgspec

from ouzel.backends.vllm.sampling_fields import (
    VERSION,
    Abilities,
    drop_optional_budget,
    find_refusal,
    grammar_text,
    make_cache_salt,
    make_confirmation,
    make_final_output,
    read_finish_reason,
    read_priority,
    sampling_fields,
)
from ouzel.backends.vllm.stats import StepStats
from ouzel.engine.state.adapters import Adapters
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import (
    FinishReason,
    PositionLogprobs,
    RequestTiming,
    StepOutput,
    TokenLogprob,
)

logger = logging.getLogger(__name__)

_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork would keep the socket to the server open
    "VLLM_CONFIGURE_LOGGING": "0",  # it uses our log, and not standard output
}
_UNLESS_SET = {"VLLM_NO_USAGE_STATS": "1"}


class ChildOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a vLLM engine in a child process."""

    arguments: dict[str, Any]  # arguments of vLLM's EngineArgs
    # start and end mark of a reasoning that may have a budget
    reasoning_marks: tuple[str, str] | None = None


def create_engine(options: dict[str, object]) -> "VllmEngine":
    """Makes the engine; an `EngineSpec` names this factory. Raises ModelLoadError."""
    chosen = msgspec.convert(options, ChildOptions)
    os.environ |= _ENVIRONMENT | {
        name: value for name, value in _UNLESS_SET.items() if name not in os.environ
    }
    if logging.getLogger("ouzel").isEnabledFor(logging.DEBUG):
        logging.getLogger("vllm").setLevel(logging.INFO)
    started = time.monotonic()
    loggers: list[StepStats] = []

    def stat_logger(vllm_config: Any, engine_index: int = 0) -> StepStats:
        loggers.append(StepStats(vllm_config, engine_index))
        return loggers[-1]

    with stage("loading the model in vLLM"):
        engine = _load(chosen, stat_logger)
    abilities = Abilities(reasoning_budgets=chosen.reasoning_marks is not None)
    return VllmEngine(engine, loggers[0], abilities, time.monotonic() - started)


def _load(options: ChildOptions, stat_logger: Any) -> Any:
    try:
        # vLLM reads the environment on import.
        from vllm import EngineArgs, LLMEngine, __version__  # noqa: PLC0415
        from vllm.config import ReasoningConfig, StructuredOutputsConfig  # noqa: PLC0415
        from vllm.usage.usage_lib import UsageContext  # noqa: PLC0415
    except ImportError as error:
        raise ModelLoadError(f"vLLM 0.33 cannot be imported by --engine-python: {error}") from error
    if not __version__.startswith(VERSION):
        logger.warning("--engine-python has vLLM %s; Ouzel supports %sx", __version__, VERSION)
    marks = options.reasoning_marks
    try:
        arguments = EngineArgs(
            **options.arguments,
            scheduling_policy="priority",  # otherwise a priority that is not 0 is an error
            # guidance takes our grammars as they are
            structured_outputs_config=StructuredOutputsConfig(backend="guidance"),
            logprobs_mode="raw_logprobs",  # the model's own distribution, as in Ouzel
            generation_config="vllm",  # each request brings the values of generation_config.json
            disable_log_stats=False,  # times and counters are read from them
            reasoning_config=marks
            and ReasoningConfig(reasoning_start_str=marks[0], reasoning_end_str=marks[1]),
        )
    except TypeError as error:  # an unknown name
        raise ModelLoadError(f"--engine-args: {error}") from error
    return LLMEngine.from_engine_args(  # uses the sizes of vLLM's own server
        arguments, usage_context=UsageContext.OPENAI_API_SERVER, stat_loggers=[stat_logger]
    )


class _Choice:
    """One choice, which is a request of its own in vLLM."""

    def __init__(self, request: EngineRequest, index: int) -> None:
        self.request = request
        self.index = index
        self.has_begun = False


class VllmEngine:
    """Implements `Engine` with vLLM in this process."""

    def __init__(self, engine: Any, stats: StepStats, abilities: Abilities, load_s: float) -> None:
        self.adapters = Adapters(None, 0)
        self._engine = engine
        self._stats = stats
        self._abilities = abilities
        self._load_s = load_s
        self._open: dict[str, _Choice] = {}  # choices by the name of vLLM's request
        # for the next step: confirmations, and choices that ended without vLLM's output
        self._ready: list[StepOutput] = []

    @property
    def info(self) -> EngineInfo:
        from vllm import __version__  # noqa: PLC0415  see above

        config = self._engine.vllm_config
        model, cache, scheduler = config.model_config, config.cache_config, config.scheduler_config
        return EngineInfo(
            backend="vllm",
            model_type=model.hf_config.model_type,
            device=str(config.device_config.device_type),
            weights=str(model.quantization or model.dtype).removeprefix("torch."),
            precision=str(model.dtype).removeprefix("torch.") + f" by vLLM {__version__}",
            kv_cache_dtype=str(cache.cache_dtype),
            vocab_size=model.get_vocab_size(),
            max_model_len=model.max_model_len,
            block_size=cache.block_size,
            num_blocks=cache.num_gpu_blocks or 0,
            max_num_seqs=scheduler.max_num_seqs,
            max_num_batched_tokens=scheduler.max_num_batched_tokens,
            load_s=self._load_s,
            has_grammars=True,
            has_beam_search=False,
            confirms_requests=True,
        )

    def add(self, request: EngineRequest) -> None:
        if any(choice.request.request_id == request.request_id for choice in self._open.values()):
            raise ValueError(f"request_id {request.request_id!r} is in use")
        refusal = find_refusal(request, self._abilities)
        request = drop_optional_budget(request, self._abilities)
        for index in range(request.n):
            if refusal is not None:
                self._ready.append(
                    make_final_output(
                        request.request_id,
                        index,
                        FinishReason.REFUSED,
                        error=refusal.message,
                        param=refusal.param,
                    )
                )
            else:
                self._add(request, index)

    def _add(self, request: EngineRequest, index: int) -> None:
        from vllm.exceptions import VLLMServerError  # noqa: PLC0415  see above
        from vllm.inputs import TokensPrompt  # noqa: PLC0415

        name = f"{request.request_id}#{index}"
        prompt = TokensPrompt(prompt_token_ids=request.prompt_token_ids)
        if (salt := make_cache_salt(request)) is not None:
            prompt["cache_salt"] = salt
        self._open[name] = _Choice(request, index)
        try:
            [rendered] = self._engine.renderer.render_cmpl([prompt])
            self._engine.add_request(
                name, rendered, sampling_params(request, index), priority=read_priority(request)
            )
        except VLLMServerError:
            raise
        except Exception as error:  # any fault of one request must not end the others
            logger.info("vLLM refused a request: %s", error)
            self._engine.abort_request([name])
            self._end(
                name,
                FinishReason.REFUSED,
                error=str(error),
                param=getattr(error, "parameter", None),
            )
        else:
            self._ready.append(make_confirmation(request.request_id, index))

    def abort(self, request_id: str, index: int | None = None) -> None:
        names = [
            name
            for name, choice in self._open.items()
            if choice.request.request_id == request_id and index in (None, choice.index)
        ]
        self._engine.abort_request(names)
        for name in names:
            self._end(name, FinishReason.ABORT)

    def step(self) -> list[StepOutput]:
        if self._ready:  # a step of vLLM may take long, and clients wait for these outputs
            return self._take_ready()
        made: list[StepOutput] = []
        if self._engine.has_unfinished_requests():
            made = [
                self._output(output)
                for output in self._engine.step()
                if output.request_id in self._open
            ]
        # A bug of vLLM: waiting clients must get an end.
        if self._open and not self._engine.has_unfinished_requests():
            for name in list(self._open):
                self._end(name, FinishReason.ERROR, error="vLLM has lost this request")
        return made + self._take_ready()

    def _take_ready(self) -> list[StepOutput]:
        ready, self._ready = self._ready, []
        return ready

    def has_unfinished(self) -> bool:
        return bool(self._ready or self._open)

    def use_idle_time(self) -> bool:
        return False

    def stats(self) -> EngineStats:
        num_blocks = self._engine.vllm_config.cache_config.num_gpu_blocks or 0
        return self._stats.read(num_blocks=num_blocks, num_open=len(self._open))

    def close(self) -> None:
        self._engine.engine_core.shutdown()

    def _end(
        self, name: str, reason: FinishReason, *, error: str | None = None, param: str | None = None
    ) -> None:
        choice = self._open.pop(name)
        self._ready.append(
            make_final_output(
                choice.request.request_id, choice.index, reason, error=error, param=param
            )
        )

    def _output(self, made: Any) -> StepOutput:
        """Converts the new output of a choice.

        It has one `CompletionOutput`, because each choice is a request with n = 1 and DELTA
        outputs.
        """
        choice = self._open[made.request_id]
        request, params = choice.request, choice.request.params
        [new] = made.outputs
        reason = read_finish_reason(new.finish_reason)
        is_first, choice.has_begun = not choice.has_begun, True
        if reason is not None:
            del self._open[made.request_id]
        token_ids = list(new.token_ids)
        stop_token_id = new.stop_reason if isinstance(new.stop_reason, int) else None
        if params.max_tokens == 0 and reason in (FinishReason.STOP, FinishReason.LENGTH):
            token_ids, stop_token_id, reason = [], None, FinishReason.LENGTH
        return StepOutput(
            request_id=request.request_id,
            index=choice.index,
            token_ids=token_ids,
            logprobs=[
                _position(at, token_id, params.num_logprobs, params.logprob_token_ids)
                for at, token_id in zip(new.logprobs or (), token_ids, strict=False)
                if params.num_logprobs is not None
            ],
            num_cached_tokens=made.num_cached_tokens or 0,
            prompt_logprobs=_prompt_positions(made.prompt_logprobs, request) if is_first else [],
            finish_reason=reason,
            stop_token_id=stop_token_id,
            error="vLLM could not compute this request" if reason is FinishReason.ERROR else None,
            timing=_timing(made.metrics) if is_first else None,
        )


def sampling_params(request: EngineRequest, index: int) -> Any:
    """Makes vLLM's SamplingParams for one choice."""
    from vllm.sampling_params import (  # noqa: PLC0415  see above
        RequestOutputKind,
        SamplingParams,
        StructuredOutputsParams,
    )

    grammar = request.grammar
    params = SamplingParams(
        **sampling_fields(request, index),
        output_kind=RequestOutputKind.DELTA,
        structured_outputs=None
        if grammar is None
        else StructuredOutputsParams(grammar=grammar_text(grammar)),
    )
    if request.params.bad_words:  # the public field takes texts; these are already tokens
        params._bad_words_token_ids = [list(word) for word in request.params.bad_words]
    return params


def _timing(metrics: Any) -> RequestTiming | None:
    if metrics is None or not metrics.scheduled_ts:
        return None
    queue_s = metrics.scheduled_ts - metrics.queued_ts
    prefill_s = metrics.first_token_ts - metrics.scheduled_ts
    return RequestTiming(queue_s=max(queue_s, 0.0), prefill_s=max(prefill_s, 0.0))


def _prompt_positions(positions: Any, request: EngineRequest) -> list[PositionLogprobs]:
    """Converts the logprobs of the prompt; the first token has none."""
    num_top = request.params.num_prompt_logprobs
    if not positions or num_top is None:
        return []
    pairs = zip(positions[1:], request.prompt_token_ids[1:], strict=True)
    return [_position(at, token_id, num_top) for at, token_id in pairs]


def _position(
    at: Any, token_id: int, num_top: int, shown_ids: tuple[int, ...] = ()
) -> PositionLogprobs:
    """Converts {token id: Logprob}; the entry of `token_id` has its true rank."""
    ranked = sorted(at.items(), key=lambda item: item[1].rank)[:num_top]
    shown = [(each, at[each]) for each in dict.fromkeys(shown_ids) if each in at]
    return PositionLogprobs(
        sampled=TokenLogprob(token_id, at[token_id].logprob),
        top=tuple(TokenLogprob(each, entry.logprob) for each, entry in [*ranked, *shown]),
        rank=at[token_id].rank,
    )

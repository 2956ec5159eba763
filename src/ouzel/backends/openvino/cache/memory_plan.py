"""Divides the free memory between the states of recurrent layers and the KV cache."""

import logging

from ouzel.backends.openvino.cache.kv_cache import (
    CachePlan,
    accept_shorter_context,
    make_plan,
    plan_cache,
)
from ouzel.backends.openvino.checks.f16_range import F16Unfit
from ouzel.backends.openvino.runners.state_tables import StatePlan, log_states, plan_states
from ouzel.backends.openvino.runners.tables import Table
from ouzel.config import EngineConfig, ModelConfig

logger = logging.getLogger(__name__)


def plan_memory(
    tables: tuple[list[Table], list[Table]],
    max_model_len: int,
    model: ModelConfig,
    engine: EngineConfig,
    free_bytes: int,
    *,
    num_blocks: int | None = None,
    keeps_context: bool = False,
) -> tuple[CachePlan, StatePlan]:
    """Plans the states first, then the KV cache; `tables` are the tables of the cache and of the
    states.

    `num_blocks` sets the number of blocks of the cache, regardless of the memory. With
    `keeps_context` it raises F16Unfit if the cache does not hold a request of full length. Raises
    ModelLoadError if the memory is too small.
    """
    cache, states = tables
    state_plan = plan_states(states, engine, free_bytes)
    log_states(state_plan, engine)
    if not cache:
        warn_of_cache_options(engine)
    if num_blocks is None:
        left_bytes = free_bytes - state_plan.num_bytes
        plan = plan_cache(
            cache, max_model_len, state_plan.max_num_seqs, engine.kv_cache_gib, left_bytes
        )
    else:
        plan = make_plan(cache, max_model_len, num_blocks)
    if plan.max_model_len < max_model_len:
        if keeps_context:
            raise F16Unfit(
                f"f16 holds {plan.max_model_len} tokens now, and a request may have {max_model_len}"
            )
        accept_shorter_context(model.max_model_len, max_model_len, plan.max_model_len)
    return plan, state_plan


def warn_of_cache_options(engine: EngineConfig) -> None:
    """Logs the options of a KV cache that the user has set for a model without one.

    They are no error: the models of a server share most options.
    """
    values = {
        "kv_cache_gib": engine.kv_cache_gib,
        "kv_cache_dtype": None if engine.kv_cache_dtype == "auto" else engine.kv_cache_dtype,
    }
    for name, value in values.items():
        if value is not None:
            logger.warning(
                "%s %s has no effect: the model has no attention, and so no KV cache", name, value
            )

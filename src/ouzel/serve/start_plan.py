"""Chooses the models that are loaded at the start of a server whose models come and go."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.errors import ModelLoadError
from ouzel.lifecycle.models import PERMANENT
from ouzel.lifecycle.turns import Limits
from ouzel.machine.quantities import format_size
from ouzel.options.options import Options
from ouzel.serve.model_sizes import find_size
from ouzel.serve.on_demand_limits import MemoryPlan, plan_memory
from ouzel.serve.open_models import CheckedModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A model of the start and its memory."""

    checked: CheckedModel
    memory: MemoryPlan | None = None  # None: no limit

    @property
    def share_bytes(self) -> int | None:
        return None if self.memory is None else self.memory.share_bytes


async def plan_start(
    options: Options, models: Sequence[CheckedModel], limits: Limits
) -> list[PlannedModel]:
    """Returns the models that are loaded at the start: as many as fit, in their order.

    With `--one-group` these are the permanent group and the first other group.
    """
    if not options.loads_on_request:
        return [PlannedModel(model) for model in models]
    chosen: list[PlannedModel] = []
    num_bytes = 0
    for model in _list_first_groups(options, models):
        if limits.max_loaded is not None and len(chosen) >= limits.max_loaded:
            break
        memory = await _plan(model, limits)
        if memory is not None and num_bytes + memory.num_bytes > (limits.max_bytes or 0):
            logger.info(
                "model %s is not loaded at the start: it takes %s, and %s of the limit are left",
                model.names[0],
                format_size(memory.num_bytes),
                format_size(max((limits.max_bytes or 0) - num_bytes, 0)),
            )
            continue
        num_bytes += 0 if memory is None else memory.num_bytes
        chosen.append(PlannedModel(model, memory))
    return chosen


def _list_first_groups(options: Options, models: Sequence[CheckedModel]) -> list[CheckedModel]:
    if not options.models.one_group:
        return list(models)
    groups = [model.settings.model.group or model.names[0] for model in models]
    first = next((group for group in groups if group != PERMANENT), PERMANENT)
    return [
        model for model, group in zip(models, groups, strict=True) if group in (PERMANENT, first)
    ]


async def _plan(model: CheckedModel, limits: Limits) -> MemoryPlan | None:
    """Plans the memory of a model; the load reports the fault of a model without a plan."""
    if limits.max_bytes is None or model.settings.vllm.is_chosen:
        return None
    try:
        return plan_memory(limits, await find_size(model), model.settings.engine)
    except ModelLoadError:
        return None

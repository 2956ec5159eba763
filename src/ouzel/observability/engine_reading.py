"""Converts readings of engines to families of metrics, with a sample for each engine."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import NamedTuple

from ouzel.observability.series import Kind, family_text


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReading:
    """The numbers of an engine at the time of a scrape; zeros before the first step."""

    num_restarts: int
    step_age_s: float
    block_size: int
    num_blocks: int
    num_running: int = 0
    num_waiting: int = 0
    num_used_blocks: int = 0
    num_state_slots: int = 0
    num_used_state_slots: int = 0
    num_prefix_query_tokens: int = 0
    num_prefix_hit_tokens: int = 0
    num_preemptions: int = 0
    num_images_encoded: int = 0
    num_image_hits: int = 0
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    encoding_s: float = 0.0
    num_store_bytes: int = 0
    num_store_written: int = 0
    num_store_loaded: int = 0
    num_store_damaged: int = 0
    num_store_skipped: int = 0
    max_loras: int = 0
    running_adapters: frozenset[str] = frozenset()
    waiting_adapters: frozenset[str] = frozenset()

    @property
    def used_share(self) -> float:
        """Returns the share of the KV blocks that is in use, 0 to 1."""
        return self.num_used_blocks / max(self.num_blocks, 1)

    @property
    def used_states_share(self) -> float:
        return self.num_used_state_slots / max(self.num_state_slots, 1)


def total(readings: Sequence[EngineReading]) -> EngineReading:
    """Returns the sums over the engines; `step_age_s` is the age of the longest running step."""
    if len(readings) == 1:
        return readings[0]
    sums = {name: sum(getattr(reading, name) for reading in readings) for name in _summed()}
    return replace(
        readings[0],
        step_age_s=max(reading.step_age_s for reading in readings),
        running_adapters=frozenset[str]().union(
            *(reading.running_adapters for reading in readings)
        ),
        waiting_adapters=frozenset[str]().union(
            *(reading.waiting_adapters for reading in readings)
        ),
        **sums,
    )


def _summed() -> list[str]:
    """Returns the names of the fields that are summed over engines."""
    others = {"step_age_s", "block_size", "max_loras", "running_adapters", "waiting_adapters"}
    return [field.name for field in fields(EngineReading) if field.name not in others]


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """The samples of one metric, from all engines, at the time of a scrape."""

    kind: Kind
    documentation: str
    samples: list[Sample]

    def text(self, name: str) -> str:
        suffix = "_total" if self.kind == "counter" else ""
        return family_text(
            name,
            self.kind,
            self.documentation,
            [(suffix, labels, value) for labels, value in self.samples],
        )


def build_families(
    readings: Sequence[tuple[Mapping[str, str], EngineReading]],
) -> dict[str, Family]:
    """Returns a dict from the stem of the name to the family.

    Each reading comes with the labels of its engine.
    """

    def family(kind: Kind, documentation: str, field: str) -> Family:
        return Family(
            kind,
            documentation,
            [Sample(labels, getattr(engine, field)) for labels, engine in readings],
        )

    gauge = partial(family, "gauge")
    counter = partial(family, "counter")

    # The two families of labels are vLLM's; routers read the labels.
    sizes: list[Sample] = []
    adapters: list[Sample] = []
    now = time.time()
    for labels, engine in readings:
        shape = {"block_size": str(engine.block_size), "num_gpu_blocks": str(engine.num_blocks)}
        sizes.append(Sample({**labels, **shape}, 1))
        loras = {
            "max_lora": str(engine.max_loras),
            "running_lora_adapters": ",".join(sorted(engine.running_adapters)),
            "waiting_lora_adapters": ",".join(sorted(engine.waiting_adapters)),
        }
        adapters.append(Sample({**labels, **loras}, now))
    return {
        "num_requests_running": gauge("Sequences in the batch.", "num_running"),
        "num_requests_waiting": gauge("Sequences waiting for the batch.", "num_waiting"),
        "kv_cache_usage_perc": gauge("Used share of the KV blocks, 0 to 1.", "used_share"),
        "state_slots_usage_perc": gauge(
            "Used share of the slots for recurrent states, stored states included.",
            "used_states_share",
        ),
        "cache_config_info": Family("gauge", "Shape of the KV cache.", sizes),
        "lora_requests_info": Family(
            "gauge",
            "Adapters in use, in the labels that routers read; the value is the time.",
            adapters,
        ),
        "prefix_cache_queries": counter("Prompt tokens looked up.", "num_prefix_query_tokens"),
        "prefix_cache_hits": counter(
            "Prompt tokens found in the prefix cache.", "num_prefix_hit_tokens"
        ),
        "prefix_store_bytes": gauge(
            "Bytes of records in the prefix cache directory.", "num_store_bytes"
        ),
        "prefix_store_written": counter(
            "Blocks and states written to the prefix cache directory.", "num_store_written"
        ),
        "prefix_store_loaded": counter(
            "Blocks and states read from the prefix cache directory.", "num_store_loaded"
        ),
        "prefix_store_damaged": counter(
            "Damaged records dropped from the prefix cache directory.", "num_store_damaged"
        ),
        "prefix_store_skipped": counter(
            "Blocks and states not written because the prefix cache directory was too slow.",
            "num_store_skipped",
        ),
        "num_preemptions": counter("Sequences sent back to waiting.", "num_preemptions"),
        "spec_decode_num_drafts": counter(
            "Proposals, counted per sequence and step.", "num_drafts"
        ),
        "spec_decode_num_draft_tokens": counter("Tokens proposed.", "num_draft_tokens"),
        "spec_decode_num_accepted_tokens": counter(
            "Proposed tokens that were accepted.", "num_accepted_tokens"
        ),
        "images_encoded": counter("Images that the vision encoder computed.", "num_images_encoded"),
        "image_hits": counter(
            "Images of requests found encoded or in the KV cache.", "num_image_hits"
        ),
        "image_encoding_seconds": counter("Time that the vision encoder took.", "encoding_s"),
        "engine_step_age_seconds": gauge(
            "Time since the start of the current step of the engine.", "step_age_s"
        ),
        "engine_restarts": counter("Restarts of the engine after it died.", "num_restarts"),
    }

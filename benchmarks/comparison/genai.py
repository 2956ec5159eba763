"""OpenVINO GenAI's ContinuousBatchingPipeline, on a stateful IR with Ouzel's own constants."""

import json
import time
from pathlib import Path
from typing import Any  # the peer is not annotated

import numpy as np
import openvino_genai as genai
from openvino_tokenizers import convert_tokenizer
from transformers import PreTrainedTokenizerFast

from benchmarks.comparison.product import Contender, NotAvailable, Turn
from benchmarks.comparison.schema import SCHEMA
from benchmarks.comparison.workloads import (
    TEMPERATURE,
    TOP_P,
    Chooser,
    Decode,
    Prefill,
    Requests,
    Workload,
    prompts,
)
from benchmarks.library_tokenizer import END
from benchmarks.stateful_ir import write_stateful_ir
from ouzel.backends.openvino.library import ov

MAX_NUM_BATCHED_TOKENS = 512
NGRAM_SIZE, NUM_PROPOSED = 2, 4  # options of GenAI's prompt lookup


def write_ir(checkpoint: Path, directory: Path, weights: str) -> Path:
    """Writes model and tokenizer, unless they are there."""
    if (directory / "openvino_detokenizer.xml").exists():
        return directory
    write_stateful_ir(checkpoint, directory, weights)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(checkpoint / "tokenizer.json"), eos_token=END
    )
    encoder, decoder = convert_tokenizer(tokenizer, with_detokenizer=True)
    ov.save_model(encoder, directory / "openvino_tokenizer.xml")
    ov.save_model(decoder, directory / "openvino_detokenizer.xml")
    return directory


class GenAI:
    """The product. Options of loading: `prompt_lookup` (it proposes tokens then), `properties`."""

    def __init__(self, contender: Contender, num_threads: int, kv_cache_gib: float) -> None:
        scheduler = genai.SchedulerConfig()
        scheduler.cache_size = max(1, round(kv_cache_gib))  # whole GiB
        scheduler.max_num_batched_tokens = MAX_NUM_BATCHED_TOKENS
        scheduler.enable_prefix_caching = True  # Ouzel's default
        self._looks_up = bool(contender.options.get("prompt_lookup"))
        properties: dict[str, Any] = {"INFERENCE_NUM_THREADS": num_threads}
        if self._looks_up:
            properties["prompt_lookup"] = True
        self._pipeline = genai.ContinuousBatchingPipeline(
            contender.model, scheduler, "CPU", properties
        )
        self._num_requests = 0
        self.settings = {
            "max_num_batched_tokens": str(MAX_NUM_BATCHED_TOKENS),
            "prefix caching": "on",
        }
        if self._looks_up:
            self.settings["prompt lookup"] = f"{NUM_PROPOSED} tokens, n-grams of {NGRAM_SIZE}"

    def run(self, workload: Workload, seed: int, options: dict[str, Any]) -> Turn:
        match workload:
            case Decode():
                return self._decode(workload, seed)
            case Prefill(num_tokens=num_tokens):
                turn = self._to_the_end(prompts(workload, seed), 1, seed)
                return Turn(turn.seconds, num_tokens, turn.num_steps)
            case Requests(output_len=output_len):
                return self._to_the_end(prompts(workload, seed), output_len, seed)

    def close(self) -> None:
        del self._pipeline

    def _to_the_end(self, rows: list[list[int]], output_len: int, seed: int) -> Turn:
        num_tokens = num_steps = 0
        before = time.perf_counter()
        handles = [self._add(token_ids, "greedy", output_len, seed) for token_ids in rows]
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
            num_tokens += sum(map(_num_new, handles))
            num_steps += 1
        return Turn(time.perf_counter() - before, num_tokens, num_steps)

    def _decode(self, workload: Decode, seed: int) -> Turn:
        if self._looks_up and workload.chooser != "greedy":
            raise NotAvailable("prompt lookup is measured with greedy answers")
        most = workload.max_context_len - workload.context_len
        rows = prompts(workload, seed)
        handles = [
            self._add(row, workload.chooser, most, 1000 * seed + i) for i, row in enumerate(rows)
        ]
        unstarted = list(handles)
        while unstarted:
            self._pipeline.step()
            unstarted = [handle for handle in unstarted if not _num_new(handle)]
        for handle in handles:
            _num_new(handle)
        num_tokens = num_steps = 0
        before = time.perf_counter()
        while num_tokens < workload.batch * workload.output_len:
            self._pipeline.step()
            num_tokens += sum(map(_num_new, handles))
            num_steps += 1
        seconds = time.perf_counter() - before
        for handle in handles:
            handle.stop()
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        return Turn(seconds, num_tokens, num_steps)

    def _add(self, token_ids: list[int], chooser: Chooser, max_tokens: int, seed: int) -> Any:
        config = genai.GenerationConfig()
        config.max_new_tokens, config.apply_chat_template = max_tokens, False
        if chooser != "greedy":
            config.do_sample, config.temperature, config.rng_seed = True, TEMPERATURE, seed
        if chooser == "top_p":
            config.top_p = TOP_P
        if chooser == "schema":
            config.structured_output_config = genai.StructuredOutputConfig(
                json_schema=json.dumps(SCHEMA)
            )
        else:
            config.eos_token_id, config.stop_token_ids, config.ignore_eos = 0, {0}, True
        if self._looks_up:
            config.num_assistant_tokens, config.max_ngram_size = NUM_PROPOSED, NGRAM_SIZE
        self._num_requests += 1
        return self._pipeline.add_request(
            self._num_requests, ov.Tensor(np.array([token_ids], np.int64)), config
        )


def _num_new(handle: Any) -> int:
    """Reads the new tokens, and returns their number."""
    count = 0
    while handle.can_read():
        count += sum(len(output.generated_ids) for output in handle.read().values())
    return count

"""Ouzel's engine in this process, without HTTP and without the engine's own process."""

import json
import time
from pathlib import Path
from typing import Any  # JSON

from benchmarks.comparison.product import Contender, Turn
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
from ouzel.engine.base import Engine
from ouzel.grammar.formats import compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary, special_token_ids
from ouzel.sampling import SamplingParams
from ouzel.serve.engine_factories import openvino_engine
from ouzel.types.engine_request import EngineRequest, Grammar


class Ours:
    """The product. Options are `engine.NAME` or `model.NAME` of the records in `ouzel.config`."""

    def __init__(
        self, contender: Contender, scratch: Path, num_threads: int, kv_cache_gib: float
    ) -> None:
        values: dict[str, Any] = {
            "model.model": contender.model,
            "model.cache_dir": str(scratch / "cache"),
            "model.weights": contender.weights,
            "engine.kv_cache_gib": kv_cache_gib,
            "engine.num_threads": num_threads,
            "engine.grammar_timeout_s": 60.0,
        } | contender.options
        options: dict[str, Any] = {"model": {}, "engine": {}}
        for name, value in values.items():
            record, _, field = name.partition(".")
            options[record][field] = value
        self._engine: Engine = openvino_engine(options)
        while self._engine.use_idle_time():  # the engine measures the cost of its steps
            pass
        self._directory = Path(contender.model)
        self._grammar: Grammar | None = None
        self._num_requests = 0
        info = self._engine.info
        names = ("weights", "precision", "kv_cache_dtype", "max_num_batched_tokens")
        self.settings = {name: str(getattr(info, name)) for name in names}
        self.settings |= {name: str(value) for name, value in contender.options.items()}

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
        self._engine.close()

    def _to_the_end(self, rows: list[list[int]], output_len: int, seed: int) -> Turn:
        num_tokens = num_steps = 0
        before = time.perf_counter()
        for token_ids in rows:
            self._add(token_ids, "greedy", output_len, seed)
        while self._engine.has_unfinished():
            num_tokens += self._step()
            num_steps += 1
        return Turn(time.perf_counter() - before, num_tokens, num_steps)

    def _decode(self, workload: Decode, seed: int) -> Turn:
        most = workload.max_context_len - workload.context_len
        rows = prompts(workload, seed)
        unstarted = {
            self._add(row, workload.chooser, most, 1000 * seed + i) for i, row in enumerate(rows)
        }
        request_ids = set(unstarted)
        while unstarted:
            for output in self._engine.step():
                # A request with a grammar has an output without tokens before its prompt is read.
                if output.token_ids:
                    unstarted.discard(output.request_id)
        num_tokens = num_steps = 0
        before = time.perf_counter()
        while num_tokens < workload.batch * workload.output_len:
            num_tokens += self._step()
            num_steps += 1
        seconds = time.perf_counter() - before
        for request_id in request_ids:
            self._engine.abort(request_id)
        while self._engine.has_unfinished():
            self._engine.step()
        return Turn(seconds, num_tokens, num_steps)

    def _step(self) -> int:
        """Returns the number of new tokens."""
        outputs = self._engine.step()
        for output in outputs:
            if output.error is not None:
                raise RuntimeError(output.error)
        return sum(len(output.token_ids) for output in outputs)

    def _add(self, token_ids: list[int], chooser: Chooser, max_tokens: int, seed: int) -> str:
        self._num_requests += 1
        params = SamplingParams(
            max_tokens=max_tokens,
            temperature=0.0 if chooser == "greedy" else TEMPERATURE,
            top_p=TOP_P if chooser == "top_p" else 1.0,
            seed=seed,
            is_seed_random=True,
            ignore_eos=chooser != "schema",
        )
        grammar = self._schema() if chooser == "schema" else None
        request_id = str(self._num_requests)
        self._engine.add(
            EngineRequest(
                request_id=request_id, prompt_token_ids=token_ids, params=params, grammar=grammar
            )
        )
        return request_id

    def _schema(self) -> Grammar:
        if self._grammar is None:
            content = json.loads((self._directory / "tokenizer.json").read_text())
            [end] = json.loads((self._directory / "generation_config.json").read_text()).values()
            marks = special_token_ids(content)
            vocabulary = GrammarVocabulary(
                marks, len(content["model"]["vocab"]) + len(marks), (end,)
            )
            text = compile_format(
                {"type": "json_schema", "json_schema": SCHEMA}, vocabulary, strict=False, styles={}
            )
            self._grammar = Grammar(text, "")
        return self._grammar

"""Makes a calibrated cache entry: the model reads a text, and its activations guide the
encoding.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ouzel.backends.openvino import make_runner
from ouzel.backends.openvino.calibration.calibration import (
    GROUP_SIZE,
    Calibration,
    ListedWeights,
    Target,
    calibrate,
    distinct,
    is_calibrated,
)
from ouzel.backends.openvino.calibration.recording import (
    CalibrationText,
    Recording,
    TracedWeights,
    add_outputs,
    find_product_inputs,
    record,
)
from ouzel.backends.openvino.checkpoint_graph import build_model, check_use
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.loader import entry_kind, list_entry_files, plan_for
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.vision import vision_family
from ouzel.backends.openvino.weights.cache import EntryWriter, calibrated_path, entry_path
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.entry_use import note_use
from ouzel.backends.openvino.weights.source import Tensors, Weights
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.weights import WeightPlan, read_weights
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage

RECORDING_FILE = "recording.bin"
READING_PLAN = read_weights("auto")  # weights of the model that reads the text


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint with its open tensors."""

    directory: Path
    config: HfConfig
    tensors: Tensors


def make_calibrated_entry(
    directory: Path,
    config: HfConfig,
    plan: WeightPlan,
    cache_dir: str,
    text: CalibrationText,
    *,
    predicts: bool = False,
    packs: bool = False,
) -> bool:
    """Makes the entry, and returns False if it exists already. Raises ModelLoadError."""
    stored = find_weights(directory, config.text_model())
    files, plain_plan = list_entry_files(directory, stored), plan_for(stored, plan)
    entry = calibrated_path(
        entry_path(cache_dir, directory, files, entry_kind(plain_plan, predicts, None, packs=packs))
    )
    if entry.exists():
        return False
    tensors, _ = stored.open()
    try:
        num_bytes = sum(file.stat().st_size for file in stored.files)
        source = Source(directory, config, tensors)
        with (
            make_calibration(source, plain_plan, entry.parent, text) as (calibration, _),
            stage("encoding the weights", num_bytes),
            EntryWriter(entry) as writer,
        ):
            weights = CompressedWeights(
                tensors,
                writer,
                calibration,
                recompress=plain_plan.recompress,
                packs=packs,
            )
            model = _build(config, weights, plan=plain_plan, predicts=predicts)
            check_use(config, model, tensors, weights.used)
            writer.commit(weights.index)
        note_use(entry, directory, files)
    except OSError as error:
        raise ModelLoadError(
            f"the calibrated weights cannot be stored in {entry.parent}: {error}"
        ) from error
    return True


@contextmanager
def make_calibration(
    source: Source, plan: WeightPlan, scratch: Path, text: CalibrationText
) -> Iterator[tuple[Calibration, ListedWeights]]:
    """Gives the calibration of a plan, and the weights that the graph asks for.

    Both need files in `scratch` until the block ends. Raises ModelLoadError if the plan has no
    matrix with four bits, or if no matrix can be calibrated.
    """
    listed = list_weights(source, plan)
    targets = [each for each in distinct(listed.targets) if _may_have_four_bits(each, plan)]
    if not targets:
        hint = ""
        if listed.num_kept:
            hint = f"; {listed.num_kept} matrices keep their stored bits without --recompress"
        raise ModelLoadError(
            f"--calibrate: --weights {plan} has no matrix in int4 that could be calibrated{hint}"
        )
    if not any(is_calibrated(each.spec) for each in targets):
        raise ModelLoadError(
            f"{source.directory.name} (type {source.config.model_type}) cannot be calibrated: "
            f"matrices are encoded in groups of {GROUP_SIZE} columns, and the model has no matrix "
            "of whole groups outside its experts"
        )
    # The writer removes its directory when the block ends, because nothing is committed.
    with EntryWriter(scratch / "calibration") as unfinished:
        recording = record_inputs(source, unfinished, text)
        if not any(recording.has(each.spec.key) for each in targets if is_calibrated(each.spec)):
            raise ModelLoadError(
                f"--calibrate: models of type {source.config.model_type} cannot be calibrated yet"
            )
        yield calibrate(source.tensors, targets, recording), listed


def list_weights(source: Source, plan: WeightPlan) -> ListedWeights:
    """Lists the weights that the graph of a plan asks for."""
    listed = ListedWeights(source.tensors, recompress=plan.recompress)
    _build(source.config, listed, plan=plan, predicts=False)
    return listed


def _may_have_four_bits(target: Target, plan: WeightPlan) -> bool:
    """Tells whether the plan has the matrix in int4.

    If the plan is int4 alone, embedding and head, which it has in int8, may have four bits, too.
    """
    is_plain_int4 = replace(plan, recompress=False) == read_weights("int4")
    return target.encoding.values == "i4" or (is_plain_int4 and target.encoding.values == "u8")


def record_inputs(source: Source, unfinished: EntryWriter, text: CalibrationText) -> Recording:
    """Runs the model over the text and records its inputs of matrix products.

    Its weights are in int8, except for weights that are compressed already.
    """
    traced = TracedWeights(CompressedWeights(source.tensors, unfinished))
    with stage("compressing the weights for the calibration"):
        model = _build(source.config, traced, plan=READING_PLAN, predicts=False)
    inputs = find_product_inputs(model.graph, traced.specs)
    indices = add_outputs(model.graph, inputs)
    chunks = text.chunks(model.default_positions)
    chunk_tokens = max(map(len, chunks))
    engine = EngineConfig(max_num_seqs=1, max_num_batched_tokens=chunk_tokens)
    settings = ModelConfig(model=str(source.directory), max_model_len=chunk_tokens)
    runner = make_runner(
        ov.Core(), model, source.config, settings, engine, num_blocks=chunk_tokens // 8 + 1
    )
    try:
        return record(runner, inputs, indices, chunks, unfinished.directory / RECORDING_FILE)
    finally:
        runner.close()


def _build(
    config: HfConfig, weights: Weights, *, plan: WeightPlan, predicts: bool
) -> LanguageModel:
    text = config.text_model()
    return build_model(
        config, family(text.model_type), vision_family(config), weights, plan, predicts=predicts
    )

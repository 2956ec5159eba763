"""`ouzel inspect` shows how `ouzel serve` would load a model, without loading it."""

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, assert_never

from ouzel.checkpoint.model_files import read_chat_templates
from ouzel.config import EngineConfig
from ouzel.machine.quantities import format_count, format_size
from ouzel.model_store.model_directory import LocalModel
from ouzel.options.command_line import read_command_line
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.serve.command import apply_logging
from ouzel.serve.open_models import open_model
from ouzel.serve.output_format import read_output_format

if TYPE_CHECKING:
    from ouzel.backends.openvino.inspected_model import Inspection

_INDENT = 12
_COLUMNS = 100


def run(arguments: Sequence[str]) -> int:
    """Prints the description of the model and returns the exit status. Raises OuzelError."""
    options = apply_logging(read_command_line(arguments, command="inspect"))
    if options.vllm.is_chosen:
        raise InvalidOption(
            "--engine: must be openvino for ouzel inspect, which does not know how vLLM loads "
            "models"
        )
    sys.stdout.write(describe_model(options, open_model(options.first).local))
    return 0


def describe_model(options: Options, local: LocalModel) -> str:
    """Returns the lines that the command prints.

    Raises ModelLoadError if the model could not be served.
    """
    # The import takes a second.
    from ouzel.backends.openvino.inspection import inspect_model  # noqa: PLC0415

    model = local.put_paths_into(options.model)
    found = inspect_model(model, options.engine)
    facts = {
        "model": f"{local.name}: {_kind(found)}",
        "weights": _weights(found),
        "stored": found.stored,
        "kernels": found.kernels,
        "KV cache": _cache(found),
        "states": _states(found),
        "sound": _sound(found),
        "speech": _speech(found),
        "draft": _draft(found),
        "context": _context(found, is_named=options.model.max_model_len is not None),
        "vectors": _vectors(found),
        "answers": _answers(options.engine, found),
        "chat": _chat(replaced(options, model=model), local) if found.task == "generate" else "",
    }
    return "".join(
        textwrap.fill(f"{name:{_INDENT}}{text}", _COLUMNS, subsequent_indent=" " * _INDENT) + "\n"
        for name, text in facts.items()
        if text
    )


def _kind(found: "Inspection") -> str:
    kind = found.model_type
    if found.text_model_type != found.model_type:
        kind += f", of which the language model {found.text_model_type} is served"
    return (
        f"{kind}, {format_count(found.num_parameters)} parameters" if found.num_parameters else kind
    )


def _weights(found: "Inspection") -> str:
    if found.speech is not None:
        return f"{format_size(found.weight_bytes)} in memory, as {found.precision}"
    if found.num_parameters == 0:
        return f"{format_size(found.weight_bytes)} in memory, from the IR as it is"
    parts = "; ".join(f"{encoding}: {format_size(size)}" for encoding, size in found.weights)
    calibrated = "calibrated, " * found.are_weights_calibrated
    size = format_size(found.weight_bytes)
    return f"{calibrated}{size} in memory, and as much in the cache on disk ({parts})"


def _cache(found: "Inspection") -> str:
    """Describes the KV cache; returns an empty text for models without attention layers, and for
    encoders.
    """
    if not found.kv_token_bytes:
        return ""
    size = format_size(found.kv_cache_bytes)
    text = (
        f"{found.kv_cache_dtype}, {format_size(found.kv_token_bytes)} a token: {size} "
        f"for {found.num_kv_tokens} tokens of at most {found.max_num_seqs} sequences"
    )
    if found.kv_cache_reason:
        text += f"; {found.kv_cache_reason}"
    if found.kv_cache_is_open:
        text += "; the first load tests u8 on a text and chooses another type if u8 harms the model"
    return text


def _states(found: "Inspection") -> str:
    """Describes the states of recurrent layers; returns an empty text without such layers."""
    if not found.num_state_slots:
        return ""
    size = format_size(found.num_state_slots * found.state_slot_bytes)
    slots = f"{found.num_state_slots} running and stored states"
    return f"{format_size(found.state_slot_bytes)} a sequence: {size} for {slots}"


def _sound(found: "Inspection") -> str:
    """Describes the windows of sound; returns an empty text for models that read none."""
    sound = found.sound
    if sound is None:
        return ""
    size = format_size(sound.num_slots * sound.slot_bytes)
    return f"{format_size(sound.slot_bytes)} a window of 30 s: {size} for {sound.num_slots} windows"


def _speech(found: "Inspection") -> str:
    """Describes the voices; returns an empty text for models that do not speak."""
    speech = found.speech
    if speech is None:
        return ""
    return (
        f"{speech.num_voices} voices, {speech.sample_rate} samples a second; "
        f"{format_size(speech.working_bytes)} for the longest piece of a text"
    )


def _draft(found: "Inspection") -> str:
    """Describes the draft; returns an empty text without one."""
    draft = found.draft
    if draft is None:
        return ""
    text = f"{draft.kind}, "
    if draft.num_parameters:
        text += f"{format_count(draft.num_parameters)} parameters, "
    parts = "; ".join(f"{encoding}: {format_size(size)}" for encoding, size in draft.weights)
    text += f"{format_size(draft.weight_bytes)} in memory ({parts})"
    if found.draft_cache_bytes:
        text += f", and a KV cache of {format_size(found.draft_cache_bytes)} for as many tokens"
    return text


def _context(found: "Inspection", *, is_named: bool) -> str:
    """Describes the longest request; `is_named` says that the user chose its length."""
    if not found.num_kv_tokens:
        longest = f" (the model's own limit is {found.max_positions})"
        return f"{found.max_model_len} tokens of a text" + (
            longest if found.max_model_len < found.max_positions else ""
        )
    own = f"{found.max_model_len} tokens for a prompt and its answer"
    if found.max_model_len < found.max_positions:
        is_cut = not is_named and found.max_model_len < found.default_positions
        reason = ", the cache holds no more" if is_cut else ""
        own += f" (the model's own limit is {found.max_positions}{reason})"
    at_once = found.num_kv_tokens // found.max_model_len
    requests = "request" if at_once == 1 else "requests"
    return f"{own}; {at_once} {requests} of this length at once{_longrope(found)}"


def _longrope(found: "Inspection") -> str:
    """Describes which factors of LongRoPE serve; returns an empty text for other models."""
    original = found.default_positions
    # A model without attention has no positions.
    if original == found.max_positions or not found.kv_token_bytes:
        return ""
    if found.max_model_len > original:
        return (
            "; LongRoPE's long factors serve all requests; the short factors would serve up to "
            f"--max-model-len {original}"
        )
    return (
        f"; LongRoPE's short factors serve; --max-model-len beyond {original} would use the long "
        "factors for all requests"
    )


def _vectors(found: "Inspection") -> str:
    """Describes vectors or scores; returns an empty text for a model that writes text or speaks."""
    match found.task:
        case "generate" | "transcribe" | "speak":
            return ""
        case "embed":
            return _forms(found)
        case "score":
            scores = "a score" if found.vector_size <= 1 else f"{found.vector_size} scores"
            return f"{scores} of each pair of texts"
        case unreachable:
            assert_never(unreachable)


def _forms(found: "Inspection") -> str:
    if "text" not in found.forms:
        return f"a vector of {found.vector_size} values for each token, compared by MaxSim"
    further = ", and a weight for each token" if "weights" in found.forms else ""
    return f"embeddings of {found.vector_size} values{further}"


def _answers(engine: EngineConfig, found: "Inspection") -> str:
    """Describes whether answers depend on the load; returns an empty text if they do."""
    same = "the same for a greedy or seeded request under any load"
    if not engine.deterministic:
        return same if found.is_deterministic else ""
    return (
        f"{same} (--deterministic); the start compares the bits of rows in different batches, "
        "and fails if they differ"
    )


def _chat(options: Options, local: LocalModel) -> str:
    templates = read_chat_templates(local.directory, options.model.chat_template)
    if not templates:
        return "no chat template: only completions"
    chosen = read_output_format(local.directory, options.model)
    calls, reasoning = (
        family.names[0] if family else "none" for family in (chosen.calls, chosen.reasoning)
    )
    return f"template with tool calls read as {calls}, reasoning as {reasoning}"

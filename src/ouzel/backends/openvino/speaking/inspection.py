"""Tells how a model that reads texts aloud would be served, without compiling it."""

from math import prod
from pathlib import Path

from ouzel.backends.openvino.inspected_model import InspectedSpeech, Inspection
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.speaking.graph import load_speaking_graph
from ouzel.backends.openvino.speaking.loader import (
    SAMPLE_RATE,
    choose_precision,
    find_max_phonemes,
    refuse_speaker_options,
)
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config import EngineConfig, ModelConfig
from ouzel.kokoro_files.voices import read_voices

_F32_BYTES = 4
# Measured with Kokoro-82M: each phoneme of the longest piece, of which there are at most 250.
_PHONEME_BYTES, _PIECE_LEN = 5 * 2**20, 250


def inspect_speaker(
    core: ov.Core, directory: Path, config: HfConfig, model: ModelConfig, engine: EngineConfig
) -> Inspection:
    """Reads the graph and the voices. Raises ModelLoadError if the model could not be served."""
    refuse_speaker_options(model, engine, config)
    graph = load_speaking_graph(core, directory)
    max_phonemes = find_max_phonemes(model, config)
    num_parameters = sum(
        prod(node.get_output_shape(0))
        for node in graph.graph.get_ops()
        if node.get_type_name() == "Constant"
    )
    return Inspection(
        model_type=config.model_type,
        text_model_type=config.model_type,
        weights=((graph.weights, num_parameters * _F32_BYTES),),  # the plugin makes f32 of them
        are_weights_calibrated=False,
        stored="",
        num_parameters=0,
        precision=choose_precision(engine).precision,
        kernels="",
        is_deterministic=engine.deterministic,
        kv_cache_dtype="none",
        kv_cache_is_open=False,
        kv_cache_reason="",
        kv_token_bytes=0,
        num_kv_tokens=0,
        max_positions=config.size("max_position_embeddings"),
        default_positions=config.size("max_position_embeddings"),
        max_model_len=max_phonemes,
        max_num_seqs=1,
        num_state_slots=0,
        state_slot_bytes=0,
        task="speak",
        vector_size=0,
        speech=InspectedSpeech(
            num_voices=len(read_voices(directory)),
            sample_rate=SAMPLE_RATE,
            working_bytes=_PHONEME_BYTES * min(max_phonemes, _PIECE_LEN),
        ),
    )

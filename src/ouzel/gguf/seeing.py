"""Makes the JSON files of a model that sees from the config of its language model and an mmproj
file.
"""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.gguf.facts import Facts
from ouzel.gguf.file import Gguf
from ouzel.gguf.projectors import find_pair, find_projector

_TOKENS = "tokenizer.ggml.tokens"
# Keys that tell which halves the file has, or that repeat facts; `audio.` is another encoder.
_HARMLESS = (
    "has_vision_encoder",
    "has_audio_encoder",
    "has_text_encoder",
    "has_llava_projector",
    "has_minicpmv_projector",
    "vision.projection_dim",
    "vision.image_size",
    "projector_type",
    "audio.",
)


def explain_mismatch(model: Gguf, text: JsonObject, projector: Gguf) -> str:
    """Tells why the encoder does not belong to the language model; "" if it may belong to it.

    `text` is the config of the language model. Raises ModelLoadError for a kind of mmproj file that
    is not supported.
    """
    facts = Facts(projector)
    known = find_projector(facts)
    if find_pair(known, str(text["model_type"])) is None:
        kinds = ", ".join(known.pairs)
        return f"it belongs to language models of the type {kinds}, not {text['model_type']}"
    size = known.feature_size(facts)
    if size != text["hidden_size"]:
        return (
            f"its features have {size} numbers, the language model's rows have "
            f"{text['hidden_size']}"
        )
    if model.metadata.has(_TOKENS) and known.feature_token not in model.metadata.texts(_TOKENS):
        return (
            f"pictures need the token {known.feature_token}, which the language model's file "
            "does not have"
        )
    return ""


def make_seeing_files(text: JsonObject, projector: Gguf) -> dict[str, JsonObject]:
    """Returns the contents of config.json and of the image processor's files, by file name.

    `text` is the config of the language model that the encoder belongs to. Raises ModelLoadError.
    """
    facts = Facts(projector)
    known = find_projector(facts)
    pair = find_pair(known, str(text["model_type"]))
    assert pair is not None, "explain_mismatch has found that they belong together"
    seeing = known.read(facts, text)
    facts.refuse_unread(_HARMLESS)
    own_type: JsonObject = {"model_type": pair.text_model_type} if pair.text_model_type else {}
    return {
        "config.json": {"model_type": pair.model_type}
        | seeing.config
        | {"text_config": text | own_type | seeing.text, "vision_config": seeing.vision},
        "preprocessor_config.json": seeing.preprocessor,
    } | ({"processor_config.json": seeing.processor} if seeing.processor else {})

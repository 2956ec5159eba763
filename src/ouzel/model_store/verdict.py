"""Judges by the small files and the headers of the large ones whether serve supports a model."""

import math
from dataclasses import dataclass
from pathlib import Path

from ouzel.errors import ModelLoadError
from ouzel.kokoro_files.files import find_kokoro
from ouzel.kokoro_files.model_directory import MODEL_TYPE


@dataclass(frozen=True, slots=True)
class Verdict:
    model_type: str  # empty if the files do not tell
    num_parameters: int  # 0 if the files do not tell
    reason: str = ""  # why serve does not support the model; empty if it does

    @property
    def is_served(self) -> bool:
        return not self.reason


def judge(directory: Path) -> Verdict:
    """Judges a model directory; builds the graph without reading the weights."""
    from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint  # noqa: PLC0415
    from ouzel.backends.openvino.encoders import encoder_family  # noqa: PLC0415
    from ouzel.backends.openvino.encoding import encoder_loader  # noqa: PLC0415
    from ouzel.backends.openvino.ir import is_ir_directory  # noqa: PLC0415
    from ouzel.backends.openvino.models import family  # noqa: PLC0415
    from ouzel.backends.openvino.vector_head import vector_head  # noqa: PLC0415
    from ouzel.checkpoint.hf_config import read_hf_config  # noqa: PLC0415
    from ouzel.config import ModelConfig  # noqa: PLC0415

    model_type = ""
    try:
        if find_kokoro(directory) is not None:
            return Verdict(MODEL_TYPE, 0)
        config = read_hf_config(directory)
        model_type, model = config.model_type, ModelConfig(model=str(directory))
        if is_ir_directory(directory):
            return Verdict(model_type, 0)
        if encoder_family(config) is not None:
            _, measured = encoder_loader(directory, config, model).measure()
            return Verdict(model_type, measured.num_parameters)
        family(config.text_model().model_type)  # an unknown family is the more useful reason
        head = vector_head(config, directory, model)
        _, measured = measure_checkpoint(directory, config, model.weight_plan, vector_head=head)
    except (ModelLoadError, OSError, ValueError) as error:
        return Verdict(model_type, 0, _brief(error, directory))
    return Verdict(model_type, measured.num_parameters)


def judge_gguf(path: Path) -> Verdict:
    """Judges a GGUF file, the first one of a model, by its metadata and its table of tensors.

    A model with an mmproj file beside it sees.
    """
    from ouzel.backends.openvino.encoders import encoder_family  # noqa: PLC0415
    from ouzel.backends.openvino.models import family  # noqa: PLC0415
    from ouzel.checkpoint.hf_config import HfConfig  # noqa: PLC0415
    from ouzel.gguf.config import make_model_config  # noqa: PLC0415
    from ouzel.gguf.file import read_gguf  # noqa: PLC0415
    from ouzel.gguf.files import AUTO, find_gguf  # noqa: PLC0415
    from ouzel.gguf.projector_choice import choose_projector  # noqa: PLC0415
    from ouzel.gguf.seeing import make_seeing_files  # noqa: PLC0415

    model_type, num_parameters = "", 0
    try:
        files = find_gguf(path)
        gguf = read_gguf(files)
        config = HfConfig(make_model_config(gguf))
        model_type = config.model_type
        locations = [*gguf.tensors.values()]
        if encoder_family(config) is None:
            family(model_type)
        projector = choose_projector(AUTO, files[0], lambda: gguf)
        if projector is not None:
            encoder = read_gguf([projector])
            seeing = make_seeing_files(config.values, encoder)["config.json"]
            model_type = str(seeing["model_type"])
            locations += encoder.tensors.values()
        num_parameters = sum(math.prod(location.shape) for location in locations)
    except (ModelLoadError, OSError, ValueError) as error:
        return Verdict(model_type, num_parameters, _brief(error, path.parent))
    return Verdict(model_type, num_parameters)


def _brief(error: Exception, directory: Path) -> str:
    """Shortens a reason: without the list of all families, and without the long, known path."""
    reason = str(error).partition("; supported: ")[0]
    return reason.replace(f"{directory}/", "").replace(str(directory), "it")

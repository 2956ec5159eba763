"""Whether a model on this disk would be served is told from its small files and the headers of the large ones."""

import math
from dataclasses import dataclass
from pathlib import Path

from ouzel.errors import ModelLoadError


@dataclass(frozen=True, slots=True)
class Verdict:
    model_type: str  # empty where the files do not say
    num_parameters: int  # 0 where they do not say
    reason: str = ""  # why it would not be served; empty where it would be

    @property
    def is_served(self) -> bool:
        return not self.reason


def judge(directory: Path) -> Verdict:
    """Takes a model directory, whose graph is built of weights that are not read."""
    from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint  # noqa: PLC0415
    from ouzel.backends.openvino.encoders import encoder_family  # noqa: PLC0415  takes half a second to import
    from ouzel.backends.openvino.encoding import encoder_loader  # noqa: PLC0415
    from ouzel.backends.openvino.ir import is_ir_directory  # noqa: PLC0415
    from ouzel.backends.openvino.models import family  # noqa: PLC0415
    from ouzel.backends.openvino.vector_head import vector_head  # noqa: PLC0415
    from ouzel.checkpoint.hf_config import read_hf_config  # noqa: PLC0415
    from ouzel.config import ModelConfig  # noqa: PLC0415

    model_type = ""
    try:
        config = read_hf_config(directory)
        model_type, model = config.model_type, ModelConfig(model=str(directory))
        if is_ir_directory(directory):
            return Verdict(model_type, 0)
        if encoder_family(model_type) is not None:
            _, measured = encoder_loader(directory, config, model).measure()
            return Verdict(model_type, measured.num_parameters)
        family(config.text_model().model_type)  # first: without one no file would help
        head = vector_head(config, directory, model)
        _, measured = measure_checkpoint(directory, config, model.weight_plan, vector_head=head)
    except (ModelLoadError, OSError, ValueError) as error:
        return Verdict(model_type, 0, _brief(error, directory))
    return Verdict(model_type, measured.num_parameters)


def judge_gguf(path: Path) -> Verdict:
    """Takes a GGUF file, the first of a model, of which the metadata and the table of tensors are read."""
    from ouzel.backends.openvino.models import family  # noqa: PLC0415  takes half a second to import
    from ouzel.gguf.config import model_config  # noqa: PLC0415
    from ouzel.gguf.file import read_gguf  # noqa: PLC0415
    from ouzel.gguf.files import find_gguf  # noqa: PLC0415

    model_type, num_parameters = "", 0
    try:
        gguf = read_gguf(find_gguf(path))
        model_type = str(model_config(gguf)["model_type"])
        num_parameters = sum(math.prod(location.shape) for location in gguf.tensors.values())
        family(model_type)
    except (ModelLoadError, OSError, ValueError) as error:
        return Verdict(model_type, num_parameters, _brief(error, path.parent))
    return Verdict(model_type, num_parameters)


def _brief(error: Exception, directory: Path) -> str:
    """Leaves out the list of all families, and the path, which is long and known."""
    reason = str(error).partition("; supported: ")[0]
    return reason.replace(f"{directory}/", "").replace(str(directory), "it")

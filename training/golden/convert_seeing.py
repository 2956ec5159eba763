"""Writes tests/gguf/golden_seeing/: checkpoints that see, as llama.cpp's own converters make GGUF files of them.

Each has the file of its language model, with tokenizer and chat template, and the mmproj file of its vision encoder. It
needs llama.cpp's source. See README.md.

    python -m training.golden.convert_seeing LLAMA_CPP [NAMES]
"""

import json
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.backends.seeing_families import FAMILIES
from training.golden.convert_gguf import TESTS, _published_heads, every_class

Config = dict[str, Any]  # JSON
GOLDEN = TESTS / "gguf" / "golden_seeing"
NORMAL, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 3, 4, 5, 6  # types of tokens
MERGED = "~~"  # llama.cpp wants one merge at least, which no prompt has
UNNAMED = "[PAD"  # the beginning of tokens without use


def _as_it_is(_: Config) -> None:
    pass


@dataclass(frozen=True)
class SeeingCase:
    form: str = "BF16"  # how the matrices of the encoder are stored
    text_form: str = "BF16"
    change: Callable[[Config], None] = _as_it_is  # of config.json
    names: dict[str, str] = field(
        default_factory=dict
    )  # prefixes of tensors, and what published checkpoints have


def _text_class(name: str) -> Callable[[Config], None]:
    """Names the class of the language model, as published checkpoints do."""

    def change(config: Config) -> None:
        config["text_config"]["architectures"] = [name]

    return change


def _published_gemma4(config: Config) -> None:
    _published_heads(config["text_config"])


def _without_dense_layers(config: Config) -> None:
    """The converter knows no dense layers beside experts; published checkpoints have none."""
    text = config["text_config"]
    text |= {"mlp_only_layers": [], "num_experts": text["num_local_experts"]}


def _named_after_its_encoder(config: Config) -> None:
    """The converter of encoders knows InternVL's by the class of the original checkpoints."""
    config["vision_config"]["architectures"] = ["InternVisionModel"]
    config["text_config"]["architectures"] = ["Qwen2ForCausalLM"]


_MM, _NEWLINE = "multi_modal_projector.", "image_newline"
_SIGLIP = {"vision_tower.": "vision_tower.vision_model."}
_INTERNVL = {
    "vision_tower.": "model.vision_tower.",
    "multi_modal_projector.": "model.multi_modal_projector.",
}
CASES: dict[str, SeeingCase] = {
    "gemma3": SeeingCase("F16", names=_SIGLIP),
    "gemma4": SeeingCase(change=_published_gemma4, names={"lm_head.": "language_model.lm_head."}),
    "glm_ocr": SeeingCase(),
    "idefics3": SeeingCase("F16", change=_text_class("VLlama3ForCausalLM")),
    "internvl": SeeingCase("Q8_0", change=_named_after_its_encoder, names=_INTERNVL),
    "lfm2_vl": SeeingCase(
        change=_text_class("Lfm2ForCausalLM"),
        names={"model.vision_tower.": "model.vision_tower.vision_model."},
    ),
    "llava": SeeingCase("F32"),
    "llava_next": SeeingCase(
        "F32",
        change=_text_class("VLlama3ForCausalLM"),
        names={_NEWLINE: _MM + _NEWLINE},  # the converter of texts leaves the projector out
    ),
    "minicpmv4_6": SeeingCase(),
    "mistral3": SeeingCase(),
    "pixtral": SeeingCase(),
    "qwen2_vl": SeeingCase(),
    "qwen2_5_vl": SeeingCase("F32"),
    "qwen3_5": SeeingCase(text_form="Q8_0"),
    "qwen3_vl": SeeingCase(),
    "qwen3_vl_moe": SeeingCase(change=_without_dense_layers),
    "smolvlm": SeeingCase(change=_text_class("VLlama3ForCausalLM")),
}


def set_vocab(model: Any) -> None:
    """Writes the tokens of tokenizer.json; llama.cpp knows pre-tokenizers of published models only."""
    directory = model.dir_model
    made = json.loads((directory / "tokenizer.json").read_text())
    special = {each["id"]: each["special"] for each in made["added_tokens"]}
    ids = made["model"]["vocab"] | {each["content"]: each["id"] for each in made["added_tokens"]}
    texts = sorted(ids, key=lambda token: ids[token])
    types = [UNUSED if token.startswith(UNNAMED) else NORMAL for token in texts]
    for id_, is_special in special.items():
        types[id_] = CONTROL if is_special else USER_DEFINED
    is_byte_level = made["normalizer"] is None
    if not is_byte_level:
        types = [
            BYTE if token.startswith("<0x") else kind
            for token, kind in zip(texts, types, strict=True)
        ]
    writer = model.gguf_writer
    writer.add_tokenizer_model("gpt2" if is_byte_level else "llama")
    writer.add_tokenizer_pre("gpt-2" if is_byte_level else "default")
    writer.add_token_list(texts)
    writer.add_token_types(types)
    if is_byte_level:
        writer.add_token_merges([" ".join(MERGED)])
    else:
        writer.add_token_scores([0.0] * len(texts))
        writer.add_add_space_prefix(False)
    config = json.loads((directory / "tokenizer_config.json").read_text() or "{}")
    for ours, theirs in {"bos": "bos", "eos": "eos", "unk": "unk"}.items():
        if (token := config.get(f"{ours}_token")) in ids:
            getattr(writer, f"add_{theirs}_token_id")(ids[token])
    writer.add_add_bos_token(False)
    writer.add_chat_template((directory / "chat_template.jinja").read_text())


def convert(directory: Path, path: Path, form: str, *, is_encoder: bool) -> None:
    import gguf  # noqa: PLC0415  llama.cpp's own, of the source that is given
    from conversion import get_model_class  # noqa: PLC0415
    from conversion.base import ModelBase, ModelType, TextModel, get_model_architecture  # noqa: PLC0415

    config = ModelBase.load_hparams(directory, False)
    kind = ModelType.MMPROJ if is_encoder else ModelType.TEXT
    model_class: Any = get_model_class(get_model_architecture(config, kind), mmproj=is_encoder)
    for each in every_class(TextModel):
        if "set_vocab" in vars(each):
            each.set_vocab = set_vocab
    file_type = {
        "F32": gguf.LlamaFileType.ALL_F32,
        "F16": gguf.LlamaFileType.MOSTLY_F16,
        "BF16": gguf.LlamaFileType.MOSTLY_BF16,
        "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    }[form]
    if model_class.__name__ == "LFM2VLModel":
        any_patch_size(model_class)
    model_class.no_mtp = True
    model = model_class(directory, file_type, path, hparams=config)
    getattr(model, "impl", model).write()


def convert_llava(directory: Path, path: Path, llama_cpp: str) -> None:
    """Converts the encoder by the script for LLaVA, which reads the tower and the projector apart.

    It was written for transformers 4, where a tower is within another module.
    """
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415
    from safetensors.torch import load_file, save_file  # noqa: PLC0415

    config = json.loads((directory / "config.json").read_text())
    tensors = {
        name: each.float() for name, each in load_file(directory / "model.safetensors").items()
    }
    tower = directory / "tower"
    tower.mkdir()
    vision, begin = config["vision_config"], "vision_tower."
    if resolutions := config.get("image_grid_pinpoints"):
        vision |= {"image_grid_pinpoints": resolutions, "mm_patch_merge_type": "spatial_unpad"}
    (tower / "config.json").write_text(json.dumps(vision))
    of_tower = {
        name.removeprefix(begin): each for name, each in tensors.items() if name.startswith(begin)
    }
    save_file(of_tower, tower / "model.safetensors", {"format": "pt"})
    others = {name: each for name, each in tensors.items() if name.startswith(_MM)}
    if f"{_MM}{_NEWLINE}" in others:
        others[_NEWLINE] = others.pop(f"{_MM}{_NEWLINE}")
    torch.save(others, tower / "projector")

    tower_class: Any = transformers.CLIPVisionModel
    load = tower_class.from_pretrained

    def load_within(name: str, **_: Any) -> Any:
        outer = torch.nn.Module()
        outer.vision_model = load(name)
        return outer

    tower_class.from_pretrained = load_within
    sys.argv[1:] = ["-m", str(tower), "--clip-model-is-vision", "--use-f32"]
    sys.argv += ["--llava-projector", str(tower / "projector"), "--output-dir", str(tower)]
    script = "tools/mtmd/legacy-models/convert_image_encoder_to_gguf.py"
    runpy.run_path(f"{llama_cpp}/{script}", run_name="__main__")
    tower_class.from_pretrained = load
    shutil.move(tower / "mmproj-model-f32.gguf", path)


def rename_tensors(path: Path, names: dict[str, str]) -> None:
    from safetensors.torch import load_file, save_file  # noqa: PLC0415

    tensors = load_file(path)
    begin = "model.language_model.layers.{}.mlp."
    dense = [number for number in (0, 1) if f"{begin.format(number)}up_proj.weight" in tensors]
    if dense == [1]:  # the only dense layer beside experts
        for name in [name for name in tensors if name.startswith(begin.format(1))]:
            del tensors[name]
        for name in [name for name in tensors if name.startswith(begin.format(0))]:
            copy = tensors[name].clone()
            tensors[begin.format(1) + name.removeprefix(begin.format(0))] = copy
    for name, tensor in tensors.items():
        if name.endswith((".experts.gate_up_proj", ".experts.down_proj")):
            tensors[name] = tensor.transpose(
                1, 2
            ).contiguous()  # as published checkpoints have them
    renamed = {}
    for name, tensor in tensors.items():
        old = next((prefix for prefix in names if name.startswith(prefix)), "")
        renamed[names.get(old, "") + name.removeprefix(old)] = tensor
    path.unlink()
    save_file(renamed, path)


def fill_vocabulary(path: Path, num_rows: int) -> None:
    """Names the rows of the embedding that have no token: converters cut them off."""
    made = json.loads(path.read_text())
    taken = {*made["model"]["vocab"].values(), *(each["id"] for each in made["added_tokens"])}
    free = [id_ for id_ in range(num_rows) if id_ not in taken]
    made["model"]["vocab"] |= {f"{UNNAMED}{id_}]": id_ for id_ in free[1:]}
    made["model"]["vocab"][MERGED] = free[0]
    path.write_text(json.dumps(made))


def any_patch_size(model_class: Any) -> None:
    """LFM2-VL's converter takes patches of 16 pixels only."""
    from conversion.base import MmprojModel  # noqa: PLC0415

    def modify_tensors(self: Any, tensor: Any, name: str, bid: int | None) -> Any:
        if "patch_embedding.weight" in name:
            side = self.hparams_vision["patch_size"]
            tensor = tensor.view(len(tensor), side, side, 3).permute(0, 3, 1, 2)
        return MmprojModel.modify_tensors(self, tensor, name, bid)

    model_class.modify_tensors = modify_tensors


def make_case(name: str, case: SeeingCase, llama_cpp: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / name
        directory.mkdir()
        FAMILIES[name].write(directory)
        config = json.loads((directory / "config.json").read_text())
        case.change(config)
        (directory / "config.json").write_text(json.dumps(config))
        rename_tensors(directory / "model.safetensors", case.names)
        fill_vocabulary(directory / "tokenizer.json", config["text_config"]["vocab_size"])
        if name == "gemma4":  # published processors name what they do not use
            settings = json.loads((directory / "preprocessor_config.json").read_text())
            settings |= {"image_mean": [0.0] * 3, "image_std": [1.0] * 3}
            (directory / "preprocessor_config.json").write_text(json.dumps(settings))
        if not (directory / "tokenizer_config.json").exists():
            (directory / "tokenizer_config.json").write_text("{}")
        made = GOLDEN / name
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        text = made / f"{name}-{case.text_form}.gguf"
        convert(directory, text, case.text_form, is_encoder=False)
        encoder = made / f"mmproj-{name}-{case.form}.gguf"
        if name.startswith("llava"):
            convert_llava(directory, encoder, llama_cpp)
        else:
            convert(directory, encoder, case.form, is_encoder=True)


def main() -> None:
    llama_cpp, *names = sys.argv[1:]
    sys.path[:0] = [llama_cpp, f"{llama_cpp}/gguf-py"]
    for name in names or CASES:
        make_case(name, CASES[name], llama_cpp)
        print(name)


if __name__ == "__main__":
    main()

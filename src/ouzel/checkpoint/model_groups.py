"""Groups model types by their parts, so that a refusal names the served models that are most alike.

Both the names of transformers (config.json, `model_type`) and the names of llama.cpp
(`general.architecture`) are listed. A spelling tells little: bamba is no llama, gpt2 no gpt_oss.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

_MOST_NEAREST = 5


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """Models with the same parts."""

    description: str  # a plural noun phrase
    types: frozenset[str]
    is_served: bool = True  # Ouzel serves some models of this group


def _group(description: str, types: str, *, is_served: bool = True) -> ModelGroup:
    return ModelGroup(description, frozenset(types.split()), is_served)


ENCODERS = _group(
    "encoders, which make vectors or scores",
    "bert roberta xlm-roberta xlm_roberta modernbert nomic_bert nomic-bert mpnet distilbert "
    "camembert electra albert deberta deberta-v2 deberta_v2 new gte jina_embeddings_v3 "
    "eurobert xlm-roberta-xl roberta-prelayernorm convbert ernie flaubert xlm fnet funnel "
    "ibert layoutlm longformer luke megatron-bert mobilebert mra nystromformer squeezebert "
    "yoso big_bird rembert roformer data2vec-text esm xmod roc_bert modernvbert neomme "
    "perceiver tapas jina-bert-v2 jina-bert-v3 nomic-bert-moe neo-bert neobert "
    "gemma-embedding modern-bert ultrabert",
)

GROUPS = (
    ENCODERS,
    _group(
        "models with Mamba layers",
        "mamba mamba2 falcon_mamba jamba zamba zamba2 bamba falcon_h1 falcon-h1 "
        "granitemoehybrid granitehybrid nemotron_h nemotron_h_moe nemotron_h_omni "
        "recurrent_gemma plamo2 plamo3",
    ),
    _group(
        "models with linear attention or short convolutions",
        "qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text qwen3_next qwen35 qwen35moe "
        "qwen3next lfm2 lfm2_moe lfm2moe lfm3 kimi_linear kimi-linear minimax bailing_hybrid "
        "olmo_hybrid rwkv rwkv6 rwkv7 arwkv7 rwkv6qwen2 xlstm qwen4_exp qwen4_exp_text zaya",
    ),
    _group(
        "models with latent attention",
        "deepseek_v2 deepseek_v3 deepseek2 deepseek_v32 deepseek_v4 glm4_moe_lite glm_moe_dsa "
        "glm-dsa minicpm3 plm longcat_flash youtu kimi_k2 kimi_k25 sarvam_mla mistral4 axk1 "
        "axk2 dots3_note dots3_note_text",
    ),
    _group(
        "models with experts",
        "mixtral qwen2_moe qwen2moe qwen3_moe qwen3moe gpt_oss gpt-oss olmoe granitemoe "
        "granitemoeshared granitemoe_swa ernie4_5_moe ernie4_5-moe glm4_moe glm4moe "
        "hunyuan_v1_moe hunyuan-moe minimax_m2 minimax-m2 dots1 phimoe dbrx jetmoe flex_olmo "
        "doge afmoe arctic grok deepseek bailingmoe bailingmoe2 exaone_moe exaone-moe "
        "cohere2_moe llama4 llama4_text mimo_v2_flash mimo2 hy_v3 hy_v4 solar_open smallthinker "
        "groveemoe llada-moe sarvam_moe laguna step35 grovemoe",
    ),
    _group(
        "models of the GPT kind, with learned positions, biases or parallel halves of a layer",
        "gpt2 gpt_neo gptj gpt_neox gptneox gpt_bigcode starcoder starcoder2 codegen codeshell "
        "opt bloom mpt falcon phi phi2 persimmon stablelm ctrl openai-gpt biogpt xglm gpt-sw3 "
        "refact gpt_neox_japanese cpmant orion nemotron jais jais2",
    ),
    _group(
        "models with norms of Gemma",
        "gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text gemma4 gemma4_text gemma4_unified "
        "gemma4_unified_text vaultgemma shieldgemma2 t5gemma t5gemma2 diffusion_gemma",
    ),
    _group(
        "models with the layers of Llama",
        "llama mistral mistral3 ministral ministral3 qwen qwen2 qwen2vl qwen3 qwen3vl phi3 smollm3 "
        "granite granite_swa granite4_vision_text arcee apertus ernie4_5 exaone exaone4 glm glm4 "
        "chatglm helium qwen3vlmoe "
        "hunyuan_v1_dense hunyuan-dense internlm2 internlm3 minicpm olmo olmo2 olmo3 cohere "
        "cohere2 command-r seed_oss baichuan xverse deci bitnet cwm diffllama nanochat plamo "
        "mellum iquestcoder hyperclovax decilm openelm maincoder dream llada seed-oss",
    ),
    _group(
        "models that read pictures",
        "qwen2_vl qwen2_5_vl qwen3_vl qwen3_vl_moe llava llava_next llava_onevision internvl "
        "idefics2 idefics3 smolvlm paligemma lfm2_vl lfm3_vl glm4v glm4v_moe glm46v glm_ocr "
        "paddleocr_vl granite4_vision granite_docling minicpmv minicpmv4_6 minicpmv4_7 aria "
        "aya_vision blip blip-2 chameleon cohere2_vision deepseek_vl deepseek_vl_hybrid "
        "deepseek_ocr2 ernie4_5_vl_moe exaone4_5 fast_vlm florence2 fuyu got_ocr2 hunyuan_vl "
        "idefics instructblip janus kosmos-2 kosmos-2.5 lighton_ocr mllama molmo2 ovis2 "
        "perception_lm phi4_multimodal pix2struct qianfan_ocr video_llama_3 video_llava "
        "vipllava muse_glimmer muse-glimmer llava_next_video emu3 udop",
    ),
    _group(
        "models of an encoder and a decoder",
        "t5 mt5 umt5 longt5 switch_transformers bart mbart pegasus pegasus_x bigbird_pegasus "
        "blenderbot blenderbot-small marian m2m_100 nllb-moe led prophetnet plbart fsmt mvp "
        "encoder-decoder t5encoder",
        is_served=False,
    ),
    _group(
        "models that hear or speak",
        "whisper moonshine moonshine_streaming wav2vec2 wav2vec2-bert hubert voxtral "
        "voxtral_realtime speech_to_text speecht5 parakeet_ctc canary qwen3_asr "
        "qwen3_omni_moe "
        "granite_speech granite_speech_plus cohere_asr bark csm dia vits musicgen moshi "
        "seamless_m4t seamless_m4t_v2 kyutai_speech_to_text vibevoice vibevoice_asr "
        "audioflamingo3 wavtokenizer-dec glmasr",
    ),
)


def describe_unsupported(name: str, label: str, supported: Iterable[str], reason: str = "") -> str:
    """Returns the message for a model type that Ouzel does not serve.

    `label` names the key, such as `model_type`. `supported` are the names of all served types.
    `reason` tells why the type cannot be served. The message names served types of the same group,
    else types with a similar spelling, else all served types.
    """
    served, group = sorted(set(supported) - {name}), find_group(name)
    start = f"{label} {name} is not supported" + (f": {reason}" if reason else "")
    if group is not None and not group.is_served:
        return f"{start}; Ouzel serves no {group.description}"
    if group is not None and (alike := find_nearest(name, group, served)):
        return f"{start}; nearest: {', '.join(alike)} ({group.description})"
    spelled = get_close_matches(name, served, n=3, cutoff=0.75)
    if spelled:
        return f"{start}; nearest: {', '.join(spelled)}"
    return f"{start}; supported: {', '.join(served)}"


def find_group(name: str) -> ModelGroup | None:
    """Returns the group of a model type. An unknown type has no group.

    The language model of a checkpoint of several modes may have a type of its own, such as
    glm4v_text.
    """
    names = {name, name.removesuffix("_text")}
    return next((group for group in GROUPS if names & group.types), None)


def find_nearest(name: str, group: ModelGroup, served: Sequence[str]) -> list[str]:
    """Returns served types of the group, sorted by the similarity of their spelling."""
    of_group = [each for each in served if each in group.types]
    return get_close_matches(name, of_group, n=_MOST_NEAREST, cutoff=0.0)

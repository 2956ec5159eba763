"""Writes tests/backends/golden_speech/: tiny random Whisper checkpoints. See README.md."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    GenerationConfig,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

from training.golden.make_golden import SMALLEST_GAP, best_token, random_weights

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_speech"
LANGUAGES = ("en", "zh", "de", "es", "fr")
WORDS = " the and you that was for are with his they have this from".split()
NUM_FRAMES = 3000
GREEDY_LENGTH = 24
NUM_TRIES = 1000
ROW_STEP = 50  # between the stored rows of the encoder's output
CASES: dict[str, dict[str, Any]] = {  # Any: settings as transformers has them
    "whisper": {
        "d_model": 64,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 128,
        "decoder_ffn_dim": 128,
        "num_mel_bins": 80,
    },
    "whisper-128-bins": {
        "d_model": 32,
        "encoder_layers": 3,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 96,
        "num_mel_bins": 128,
    },
}
ALIGNMENT_HEADS = [[0, 1], [1, 0]]  # layer, head
FIRST_SEEDS = {"whisper": 229, "whisper-128-bins": 136}  # the seeds below make near-ties


def make_tokenizer() -> Tokenizer:
    """Makes a tokenizer with all bytes, a few words and Whisper's special tokens.

    The order is that of Whisper: texts, end, start, languages, tasks, timestamps.
    """
    units = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary, merges = {unit: number for number, unit in enumerate(units)}, []
    for word in WORDS:
        parts = list(f"Ġ{word}")
        while len(parts) > 1:
            joined = parts[0] + parts[1]
            if joined not in vocabulary:
                vocabulary[joined] = len(vocabulary)
                merges.append((parts[0], parts[1]))
            parts = [joined, *parts[2:]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    names = ["endoftext", "startoftranscript", *LANGUAGES, "translate", "transcribe", "startoflm"]
    names += ["startofprev", "nospeech", "notimestamps"]
    tokenizer.add_special_tokens([f"<|{name}|>" for name in names])
    seconds = [AddedToken(f"<|{step / 50:.2f}|>", normalized=False) for step in range(1501)]
    tokenizer.add_tokens(seconds)
    start = [f"<|{name}|>" for name in ("startoftranscript", "notimestamps")]
    end = "<|endoftext|>"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{' '.join(start)} $A {end}",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in (*start, end)],
    )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, path: Path, *, has_timestamps: bool) -> None:
    """Writes tokenizer.json; older checkpoints have no timestamps in it."""
    content = json.loads(tokenizer.to_str())
    if not has_timestamps:
        content["added_tokens"] = [each for each in content["added_tokens"] if each["special"]]
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")


def make_mel(num_bins: int, seed: int) -> np.ndarray[Any, Any]:
    """Makes log-mel values [bins, frames] between -1 and 1.5; the tests make the same."""
    return (np.random.default_rng(seed).random((num_bins, NUM_FRAMES)) * 2.5 - 1).astype(np.float32)


def random_model(config: WhisperConfig, seed: int) -> WhisperForConditionalGeneration:
    """Makes a model with random weights of f16; positions of the encoder stay sinusoids."""
    model = WhisperForConditionalGeneration._from_config(config, attn_implementation="eager")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "encoder.embed_positions" not in name:
                values = random_weights(name, parameter.shape, generator)
                if parameter.dim() == 3:  # a convolution: its inputs are channels and taps
                    values *= (parameter.shape[1] ** -0.5) / 1.5
                parameter.copy_(values)
            parameter.copy_(parameter.half().float())
    return model.float().eval()


def compute_outputs(
    model: WhisperForConditionalGeneration, tokenizer: Tokenizer, seed: int
) -> tuple[dict[str, np.ndarray[Any, Any]], float]:
    """Returns the arrays of golden.npz, and the smallest gap in standard deviations."""
    mel = torch.tensor(make_mel(model.config.num_mel_bins, seed))[None]
    names = ("startoftranscript", "en", "transcribe", "notimestamps")
    prompt = [tokenizer.token_to_id(f"<|{name}|>") for name in names]
    greedy: list[int] = []
    smallest_gap = float("inf")
    with torch.no_grad():
        encoded = model.model.encoder(mel)
        while len(greedy) < GREEDY_LENGTH and smallest_gap >= SMALLEST_GAP:
            ids = torch.tensor([prompt + greedy])
            logits = model(encoder_outputs=encoded, decoder_input_ids=ids).logits[0]
            token_id, gap = best_token(logits[-1])
            smallest_gap = min(smallest_gap, gap)
            greedy.append(token_id)
        tokens = prompt + greedy
        computed = model(
            encoder_outputs=encoded,
            decoder_input_ids=torch.tensor([tokens]),
            output_attentions=True,
        )
    heads = [computed.cross_attentions[layer][0, head] for layer, head in ALIGNMENT_HEADS]
    return {
        "mel_seed": np.int64(seed),
        "encoded": encoded.last_hidden_state[0, ::ROW_STEP].numpy().astype(np.float32),
        "tokens": np.array(tokens, np.int64),
        "logits": computed.logits[0].numpy().astype(np.float32),
        "alignment": torch.stack(heads).numpy().astype(np.float16),
    }, smallest_gap


def make_generation_config(tokenizer: Tokenizer) -> GenerationConfig:
    ids = {name: tokenizer.token_to_id(f"<|{name}|>") for name in (*LANGUAGES, "transcribe")}
    end, no_timestamps = (
        tokenizer.token_to_id(f"<|{name}|>") for name in ("endoftext", "notimestamps")
    )
    return GenerationConfig(
        alignment_heads=ALIGNMENT_HEADS,
        begin_suppress_tokens=[tokenizer.token_to_id("Ġ"), end],
        bos_token_id=end,
        decoder_start_token_id=end + 1,
        eos_token_id=end,
        is_multilingual=True,
        lang_to_id={f"<|{name}|>": ids[name] for name in LANGUAGES},
        max_initial_timestamp_index=50,
        max_length=64,
        no_timestamps_token_id=no_timestamps,
        pad_token_id=end,
        prev_sot_token_id=tokenizer.token_to_id("<|startofprev|>"),
        return_timestamps=False,
        suppress_tokens=[tokenizer.token_to_id(each) for each in '"#()*+/:;<=>@[]^_`{|}~'],
        task_to_id={"transcribe": ids["transcribe"], "translate": ids["transcribe"] - 1},
    )


def make_case(name: str) -> None:
    tokenizer = make_tokenizer()
    end = tokenizer.token_to_id("<|endoftext|>")
    config = WhisperConfig(
        **CASES[name],
        vocab_size=tokenizer.get_vocab_size(),
        max_source_positions=NUM_FRAMES // 2,
        max_target_positions=64,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=end + 1,
        begin_suppress_tokens=None,
    )
    for seed in range(FIRST_SEEDS[name], FIRST_SEEDS[name] + NUM_TRIES):
        model = random_model(config, seed)
        outputs, gap = compute_outputs(model, tokenizer, seed)
        if gap >= SMALLEST_GAP and len(set(outputs["tokens"].tolist())) >= GREEDY_LENGTH // 2:
            break
    else:
        raise SystemExit(f"{name}: no seed keeps the best logits apart from the second")
    directory = GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    model.generation_config = make_generation_config(tokenizer)
    model.half().save_pretrained(directory)
    save_tokenizer(tokenizer, directory / "tokenizer.json", has_timestamps=name == "whisper")
    special = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), "<|endoftext|>")
    settings = {"tokenizer_class": "WhisperTokenizer", **special, "model_max_length": 1024}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    WhisperFeatureExtractor(feature_size=config.num_mel_bins).save_pretrained(directory)
    np.savez_compressed(directory / "golden.npz", **outputs)
    print(f"{name}: seed {seed}, smallest gap {gap:.3f} deviations")


def main() -> None:
    for name in sys.argv[1:] or CASES:
        make_case(name)


if __name__ == "__main__":
    main()

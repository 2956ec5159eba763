"""The head is right about most tokens that it proposes for the demo model.

Its config.json names the layers that it reads by two keys; each key alone must lead to the same
layers.
"""

import json
import shutil
from pathlib import Path

import pytest

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.demo import MODEL_DIRECTORY
from ouzel.engine.core import EngineCore
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.tokenizer.huggingface import load_tokenizer
from tests.engine.drafting import FREE_PREDICTION
from tests.engine.requests import make_request, run

HEAD = Path(__file__).parent / "demo_head"
LAYERS = "eagle_aux_hidden_state_layer_ids"
QUESTIONS = (
    "Count from 3 to 14.",
    "Who are you?",
    "What is 17 plus 25?",
    "What can you do?",
    "Count up from 21 to 30.",
)


@pytest.mark.parametrize("count", ["inputs", "outputs"])
def test_the_demo_head_drafts_right_tokens(count: str, tmp_path: Path, cache_dir: Path) -> None:
    """Most drafts are right with either key; half of them are wrong if the layers are off by one.

    The first level of config.json names the layers whose input is read, `eagle_config` the layers
    whose output is read.
    """
    head = shutil.copytree(HEAD, tmp_path / "head")
    config = json.loads((head / "config.json").read_text())
    del (config["eagle_config"] if count == "inputs" else config)[LAYERS]
    (head / "config.json").write_text(json.dumps(config))
    model = ModelConfig(
        model=str(MODEL_DIRECTORY), draft_model=str(head), cache_dir=str(cache_dir), weights="int8"
    )
    runner = create_runner(model, EngineConfig(kv_cache_gib=0.05))
    tokenizer = load_tokenizer(MODEL_DIRECTORY)
    template = ChatTemplate(
        {"default": (MODEL_DIRECTORY / "chat_template.jinja").read_text(encoding="utf-8")}, {}
    )
    texts = [
        template.render(
            [{"role": "user", "content": question}], variables={"add_generation_prompt": True}
        )
        for question in QUESTIONS
    ]
    requests = [
        make_request(
            tokenizer.encode(text, add_special_tokens=False),
            max_tokens=80,
            eos_token_ids=tokenizer.eos_token_ids,
        )
        for text in texts
    ]

    results = run(EngineCore(runner, speculation=FREE_PREDICTION), requests)

    finals = [result.final for result in results.values()]
    num_proposed = sum(final.num_proposed_tokens for final in finals)
    assert num_proposed > 100
    assert sum(final.num_accepted_tokens for final in finals) >= 0.75 * num_proposed

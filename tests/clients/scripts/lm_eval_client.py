"""Scores a user's own task with lm-eval, which uses the server's model and tokenizer.

Usage: `python lm_eval_client.py ROOT`.
"""

import json
import sys
import tempfile
from pathlib import Path

import lm_eval
from lm_eval.tasks import TaskManager

DOCUMENTS = [
    {"question": "Hello!", "answers": ["Hello! How can I help you?", "zzz qqq"], "right": 0}
] * 3
TASK = """
task: demo_greetings
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{answers}}"
doc_to_target: "{{right}}"
metric_list: [{metric: acc}]
"""

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data.jsonl"
        data.write_text("\n".join(map(json.dumps, DOCUMENTS)))
        (Path(directory) / "greetings.yaml").write_text(TASK.replace("DATA", str(data)))
        evaluated = lm_eval.simple_evaluate(
            model="local-completions",
            model_args={
                "model": "ouzel",
                "base_url": f"{sys.argv[1]}/v1/completions",
                "tokenizer_backend": "remote",
                "num_concurrent": 2,
            },
            tasks=["demo_greetings"],
            task_manager=TaskManager(include_path=directory, include_defaults=False),
            bootstrap_iters=0,
        )
    assert evaluated is not None
    assert evaluated["results"]["demo_greetings"]["acc,none"] == 1.0, evaluated["results"]
    assert evaluated["n-samples"]["demo_greetings"]["effective"] == len(DOCUMENTS)

"""Each of several models has settings of its own and shares the others."""

from pathlib import Path
from typing import Any

import pytest

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options, read_options


def read(**values: Any) -> Options:
    return read_options(values, {})


def test_without_any_the_model_is_the_only_one() -> None:
    options = read(model="m", max_num_seqs=7)

    [only] = options.all_models
    assert (only.model, only.engine) == (options.model, options.engine)
    assert (only.model.model, only.engine.max_num_seqs) == ("m", 7)


def test_models_have_the_options_of_the_server() -> None:
    options = read(
        model="m", served_model_name=["main"], weights="int4", models=["a=/x", "b=org/y"]
    )

    assert [(each.model.model, each.model.served_model_name) for each in options.all_models] == [
        ("m", ("main",)),
        ("/x", ("a",)),
        ("org/y", ("b",)),
    ]
    assert {each.model.weights for each in options.all_models} == {"int4"}


def test_the_first_stands_for_a_model_that_is_not_named() -> None:
    options = read(models=["a=/x", "b=/y"])

    assert [each.model.model for each in options.all_models] == ["/x", "/y"]
    assert options.model.served_model_name == ("a",)


def test_an_equals_sign_may_be_in_a_path() -> None:
    assert read(models=["a=/x=1"]).model.model == "/x=1"


def test_in_the_file_a_model_has_options_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text(
        "weights: int4\nmax_num_seqs: 9\nmodels:\n- {name: a, model: /x, weights: f32, replicas: "
        "1}\n- b=/y\n"
    )

    a, b = read_options({"config": str(file)}, {}).all_models
    assert (a.model.weights, b.model.weights) == ("f32", "int4")
    assert (a.engine.max_num_seqs, b.engine.max_num_seqs) == (9, 9)


def test_ignored_models_of_the_file_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("models:\n- b=/y\n")

    options = read_options({"config": str(file), "models": ["a=/x"]}, {})
    assert [each.model.served_model_name for each in options.all_models] == [("a",)]
    assert options.warnings == (
        f"--config {file}: its `models` are ignored, since --model or OUZEL_MODELS names models",
    )
    assert read_options({"config": str(file)}, {}).warnings == ()


def test_a_key_that_stands_twice_in_the_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("models:\n- a=/x\nport: 1\nmodels:\n- b=/y\n")

    with pytest.raises(InvalidOption, match=r"'models' stands twice in a mapping in .* line 4"):
        read_options({"config": str(file)}, {})


def test_the_environment_names_models_too() -> None:
    options = read_options({}, {"OUZEL_MODELS": "a=/x, b=/y"})

    assert [each.model.served_model_name for each in options.all_models] == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (["x"], "--model 1: must be NAME=MODEL, given 'x'"),
        (["a=/x", "=y"], "--model 2: must be NAME=MODEL, given '=y'"),
        (["a=/x", "a=/y"], "--model: each must have a name of its own, given 'a' twice"),
        ([{"name": "a"}], "--model 1: must have a text 'model', given None"),
        ([{"name": "a\n", "model": "/x"}], "--model 1: name: must be printable, given 'a\\n'"),
        ([{"name": 3, "model": "/x"}], "--model 1: must have a text 'name', given 3"),
        (
            [{"name": "a", "model": "/x", "weigths": "f32"}],
            "has no option weigths; did you mean weights?",
        ),
        ([{"name": "a", "model": "/x", "port": 1}], "--model 1: a model has no option port"),
        (
            [{"name": "a", "model": "/x", "served_model_name": "b"}],
            "has no option served_model_name",
        ),
        ([{"name": "a", "model": "/x", "weights": "f31"}], "--model 1: --weights:"),
        (
            [{"name": "a", "model": "/x", "kv_cache_dtype": "f32"}],
            "--model 1: --kv-cache-dtype: f32 needs",
        ),
        (
            [{"name": "a", "model": "/x", "max_lora_rank": 32}],
            "--model 1: --max-lora-rank: needs --lora or --max-loras",
        ),
    ],
)
def test_an_error_is_reported_with_its_place(models: list[object], message: str) -> None:
    with pytest.raises(InvalidOption) as refusal:
        read(models=models)

    assert message in str(refusal.value)


def test_a_served_name_needs_a_model_that_has_none() -> None:
    with pytest.raises(InvalidOption, match="--served-model-name: needs MODEL"):
        read(models=["a=/x"], served_model_name=["b"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"mtp": True, "draft_model": "x"},
            "--mtp: cannot be used with --draft-model, given 'x'",
        ),
        (
            {"replicas": 2, "engine_process": False},
            "--replicas: needs --engine-process, given 2 without it",
        ),
        ({"replicas": 10_000}, "--replicas: must be <= the processors that this program may use"),
        ({"replicas": 0}, "--replicas: must be a whole number >= 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_line(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidOption) as refusal:
        read(**values)

    assert message in str(refusal.value)

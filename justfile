# Short names for the commands of CONTRIBUTING.md. `just` lists them; any of them can be typed by hand.

_list:
    @just --list --unsorted

# The inner loop, under a minute: the tests of all rooms or of the named ones (`just fast engine api/ollama`), without the slow ones
fast *rooms:
    uv run pytest --fast {{ if rooms == "" { "" } else { "tests/" + replace(rooms, " ", " tests/") } }}

# All tests of the named rooms, the slow ones included (`just room engine`)
room +rooms:
    uv run pytest {{ "tests/" + replace(rooms, " ", " tests/") }}

# All tests but what only a release runs, or those that are named
test *arguments:
    uv run pytest {{ arguments }}

# What lines of src/ouzel the tests reach, servers and engines included: all tests, or `just coverage tests/routing`
coverage *arguments:
    rm -rf .cache/coverage && mkdir -p .cache/coverage
    -uv run --with 'coverage>=7.10' coverage run -m pytest {{ arguments }}
    uv run --with 'coverage>=7.10' coverage combine -q
    uv run --with 'coverage>=7.10' coverage html -q
    uv run --with 'coverage>=7.10' coverage report

# What ruff says
lint:
    uv run ruff check
    uv run ruff format --check

# What mypy says
types:
    uv run mypy

# Sorts imports, mends what ruff can mend, and formats
format:
    uv run ruff check --fix
    uv run ruff format

# The limits of the house: lengths, complexity, import cycles
measure *arguments:
    uv run python -m tools.house.measure {{ arguments }}

# The language of each room: `just language src/ouzel/wire --list`, `just language --write`
language *arguments:
    uv run python -m tools.house.language {{ arguments }}

# How a request changes folders on its way
hops *arguments:
    uv run python -m tools.house.hops {{ arguments }}

# Renews the documents that are generated; the second of them starts servers and takes minutes
docs:
    uv run python -m tools.documents.fields
    uv run python -m tests.serve.conformance

# The site of docs/, in site/; fails on a dead link and on a page that mkdocs.yml lacks
docs-site *arguments:
    NO_MKDOCS_2_WARNING=1 uv run --isolated --only-group docs mkdocs build --strict {{ arguments }}

# What the HTTP layer, the Responses API and the sampler cost, without a model
bench *arguments:
    uv run python benchmarks/api.py {{ arguments }}
    uv run python -m benchmarks.responses {{ arguments }}
    uv run python benchmarks/sampler.py

# The engine against its peers, on real weights
bench-engine *arguments:
    uv run --group bench python -m benchmarks.engine {{ arguments }}

# Ouzel, OpenVINO GenAI and llama.cpp in one run; compiles llama.cpp first, once
compare *arguments:
    uv run --group bench python -m benchmarks.compare {{ arguments }}

# deploy/ by the tools of those for whom it is made, which it installs
deploy-check:
    uv run python -m tools.deploy.check

# What the image has, built and started without a container tool; needs root
image-check *arguments:
    uv run python -m tools.deploy.image {{ arguments }}

# Ray Serve with two replicas, against one server; installs Ray into an environment of its own
test-ray *arguments:
    uv run pytest -n 0 --release tests/cluster {{ arguments }}

# The products of kernels/ on every level that this processor supports, against plain loops and under sanitizers; needs a C++ compiler
kernels-check:
    uv run --with 'tbb-devel==2021.13.1' --with cmake --with ninja kernels/tests/check.sh

# All tests of the playground; CI leaves many of the slower ones out
page *arguments:
    uv run pytest --release tests/playground {{ arguments }}

# The tests of the playground with a slow page: those that do not wait for the page fail
slow-page *arguments="tests/playground":
    OUZEL_TESTS_SLOW_PAGE=1 OUZEL_TESTS_HANG_MS=90000 uv run pytest --release -n 2 {{ arguments }}

# The tests of the playground in the machine's Firefox (`apt-get install firefox-esr`)
firefox *arguments:
    OUZEL_TESTS_NEED_FIREFOX=1 OUZEL_TESTS_BROWSER=firefox uv run pytest -n 0 --release tests/playground {{ arguments }}

# What CI runs
ci:
    .ci/run

# Wheels and sdists of ouzel and ouzel-kernels in dist/, built twice and checked, and a server out of the wheels
build *arguments:
    uv run python -m tools.house.distributions
    uv run python -m tools.house.try_wheel dist/ouzel-*.whl {{ arguments }}

# All that a release must pass
release-check: lint types measure build
    uv run pytest --release

# vLLM as the engine, on a machine with a GPU and vLLM 0.33: what it must do, and its speed beside `vllm serve`
test-vllm python model *arguments:
    uv run python -m benchmarks.vllm_engine {{ model }} --engine-python {{ python }} {{ arguments }}

# Whether the source of a vLLM (the `vllm` of an unpacked wheel) has the names that we use
vllm-names directory *arguments:
    uv run python -m tools.vllm.names {{ directory }} {{ arguments }}

"""Writes the page about the server: HTML that loads nothing and runs no script."""

import shlex
from collections.abc import Iterable, Sequence
from html import escape

from ouzel.api.endpoint.example import Example
from ouzel.api.endpoint.operation import Operation
from ouzel.api.site.index import Index

_STYLE = """
:root { color-scheme: light dark; background: Canvas; color: CanvasText }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td { padding: .2rem 1rem .2rem 0; vertical-align: top; border-top: 1px solid #8884 }
code, pre { font: 14px/1.5 ui-monospace, monospace }
pre { padding: .7rem; border: 1px solid #8884; overflow-x: auto }
a { color: light-dark(#0b57d0, #a8c7fa) }
"""


def index_page(
    index: Index, example: Example | None, operations: Sequence[Operation], *, root_path: str
) -> str:
    """Returns the page. Without a model, `example` is None."""
    names = ", ".join(f"<code>{escape(name)}</code>" for name in index.models)
    answers = f"This server answers for {names}, with a context of {index.max_model_len} tokens."
    if not names:
        answers = "This server has no model now."
    key = " Requests need an API key." if index.needs_api_key else ""
    urls = _table((escape(client), _code(url)) for client, url in index.base_urls.items())
    endpoints = _table(
        (
            _code(f"{operation.method.upper()} {root_path}{operation.path}"),
            escape(operation.summary),
        )
        for operation in operations
    )
    attempt = ""
    if example is not None:
        command = escape(_command(index, example))
        attempt = (
            '<h2>Try it</h2>\n<pre tabindex="0" role="region" aria-label="A command to try">'
            f"{command}</pre>"
        )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>Ouzel: {escape(index.models[0] if index.models else "no model")}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>Ouzel {escape(index.version)}</h1>
<p>{answers}{key}</p>
<h2>Base URLs</h2>
{urls}
{attempt}
<h2>Endpoints</h2>
<p>All their fields, with ranges and defaults, are in the
<a href="{escape(index.openapi)}">OpenAPI document</a>.</p>
{endpoints}
</main>
</body>
</html>
"""


def _command(index: Index, example: Example) -> str:
    key = ' \\\n  -H "Authorization: Bearer $API_KEY"' if index.needs_api_key else ""
    url = shlex.quote(index.base_urls["OpenAI"] + example.path)
    content = "" if example.is_form else " \\\n  -H 'Content-Type: application/json'"
    sent = "".join(f" \\\n  {argument}" for argument in example.curl_arguments())
    return f"curl {url}{content}{key}{sent}"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = "\n".join(f"<tr><td>{first}</td><td>{second}</td></tr>" for first, second in rows)
    return f"<table>\n{lines}\n</table>"

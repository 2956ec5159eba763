"""This package turns what a request demands of the output's form into one grammar text, in pure Python.

`formats` reads the demand, with `schema` for JSON schemas and `ebnf` for grammars of the client's own; `write` has the
forms to which all of them are brought, and writes them as text. `ouzel.engine.grammars` keeps the engine to that text.
"""

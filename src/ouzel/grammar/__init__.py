"""Turns the demands of a request on the output's form into one grammar text, in pure Python.

`formats` reads the demand, with `schema` for JSON schemas and `ebnf` for the client's own grammars.
`write` has the common intermediate forms and writes them as text. `ouzel.engine.grammars` makes the
engine follow that text.
"""

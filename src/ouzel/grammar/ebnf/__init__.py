"""Reads grammars that clients write themselves, in EBNF or in Lark."""

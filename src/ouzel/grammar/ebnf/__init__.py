"""This package reads grammars that clients write themselves, in EBNF or in Lark."""

"""Holds the JSON schema of the workloads: an endless array of objects with the usual keywords.

llama.cpp gets it as a grammar in its own syntax, with repetitions as its server's converter writes
them: the converter of llama-cpp-python unrolls them, and fails at the dot of the pattern.
"""

SCHEMA = {
    "type": "array",
    "minItems": 200,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 40},
            "mail": {"type": "string", "pattern": "^[a-z]{3,12}@[a-z]{3,12}\\.org$"},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 4},
        },
        "required": ["name", "mail", "age", "tags"],
        "additionalProperties": False,
    },
}

GBNF = r"""
root ::= "[" space item ("," space item){199,} "]" space
item ::= "{" space name "," space mail "," space age "," space tags "}" space
name ::= "\"name\"" space ":" space "\"" char{0,40} "\"" space
mail ::= "\"mail\"" space ":" space "\"" [a-z]{3,12} "@" [a-z]{3,12} ".org" "\"" space
age ::= "\"age\"" space ":" space ([0-9] | [1-9] [0-9] | "1" [0-1] [0-9] | "120") space
tags ::= "\"tags\"" space ":" space "[" space (tag ("," space tag){0,3})? "]" space
tag ::= ("\"red\"" | "\"green\"" | "\"blue\"") space
char ::= [^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4})
space ::= | " " | "\n"{1,2} [ \t]{0,20}
"""

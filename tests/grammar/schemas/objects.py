"""Lists cases for properties, required and additionalProperties, with names of all kinds."""

from tests.grammar.schemas.cases import (
    DIGIT,
    NULL,
    PLAIN,
    SHORT,
    STRICT,
    Case,
    array,
    closed,
    closed_object,
    named,
)

BOOLEAN = {"type": "boolean"}
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

PROPERTIES = [
    Case(
        "properties",
        closed(a={"type": "integer"}, b=SHORT, c=BOOLEAN),
        ('{"a": 1, "b": "x", "c": true}',),
        ('{"a": 1}', '{"a": 1, "b": "x", "c": 1}'),
        ('{"b": "x", "a": 1, "c": true}',),
    ),
    Case(
        "optional properties",
        closed_object({"a": {"type": "integer"}, "b": SHORT, "c": NULL}, "a", "c"),
        ('{"b": ""}', '{"a": 1, "b": "", "c": null}', '{"b": "", "c": null}'),
        ('{"a": 1}', "{}"),
    ),
    Case(
        "all optional",
        closed_object({"a": NULL, "b": NULL}, "a", "b"),
        ("{}", '{"a": null}', '{"b": null}', '{"a": null, "b": null}'),
        ('{"c": null}',),
    ),
    Case("no properties", named(), ("{}",), ('{"a": 1}',)),
    Case("open", OPEN, ('{"a": 1}', '{"a": 1, "b": [2]}'), ('{"a": "x"}', '{"b": 1}'), modes=PLAIN),
    Case(
        "closed by strict",
        OPEN,
        ('{"a": 1}',),
        ('{"a": "x"}',),
        ('{"a": 1, "b": 2}',),
        modes=STRICT,
    ),
    Case(
        "open by wish",
        {**OPEN, "additionalProperties": True},
        ('{"a": 1, "b": [2]}',),
        ('{"a": "x"}', '{"a": 1, "a": "x"}'),
    ),
    Case(
        "others of one kind",
        {**OPEN, "additionalProperties": SHORT},
        ('{"a": 1, "b": "x", "c": ""}',),
        ('{"a": 1, "b": 2}', r'{"a": 1, "\u0061": "x"}'),
    ),
    Case(
        "others of no kind",
        {"type": "object", "additionalProperties": False},
        ("{}",),
        ('{"a": 1}',),
    ),
    Case(
        "a dictionary",
        {"type": "object", "additionalProperties": DIGIT},
        ("{}", '{"a": 1, "b": 2}'),
        ('{"a": "x"}', '{"a": 10}'),
    ),
    Case(
        "a dictionary of lists",
        {"type": "object", "additionalProperties": array(NULL, maxItems=1)},
        ('{"a": [null]}',),
        ('{"a": null}',),
    ),
    Case(
        "a dictionary of dictionaries",
        {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": NULL},
        },
        ('{"a": {"b": null}}',),
        ('{"a": null}',),
    ),
    Case(
        "properties without a type",
        {
            "properties": {"a": NULL},
            "required": ["a"],
            "type": ["object", "null"],
            "additionalProperties": False,
        },
        ("null", '{"a": null}'),
        ("{}",),
    ),
    Case(
        "properties of anything",
        {"properties": {"a": NULL}, "additionalProperties": False},
        ("1", '"x"', '{"a": null}'),
        ('{"a": 1}',),
    ),
    Case(
        "a property that must not be",
        {"type": "object", "properties": {"a": False, "b": NULL}},
        ("{}", '{"b": null}'),
        ('{"a": 1}', r'{"\u0061": 1}'),
    ),
    Case(
        "required, not listed",
        {"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}},
        ('{"x": 1}', '{"x": 1, "y": 2}'),
        ("{}", '{"x": "a"}'),
    ),
    Case(
        "required, two not listed",
        {"type": "object", "required": ["x", "y"]},
        ('{"x": 1, "y": []}',),
        ('{"x": 1}',),
        ('{"y": 1, "x": 2}',),
    ),
    Case(
        "required, one listed",
        {
            "type": "object",
            "properties": {"a": NULL},
            "required": ["b", "a"],
            "additionalProperties": True,
        },
        ('{"a": null, "b": 1}',),
        ('{"a": null}', '{"b": 1}'),
    ),
    Case("required twice", {**named("a"), "required": ["a", "a"]}, ('{"a": null}',), ("{}",)),
    Case(
        "required of nothing",
        {"type": "object", "required": [], "additionalProperties": NULL},
        ("{}",),
        ('{"a": 1}',),
    ),
    Case(
        "required without a type",
        {"required": ["a"], "type": ["object", "integer"]},
        ("5", '{"a": 1}'),
        ("{}",),
    ),
    Case(
        "many properties",
        named(*(f"field_{n}" for n in range(15))),
        (),
        ("{}", '{"field_0": null}'),
    ),
    Case(
        "many optional properties",
        closed_object({f"f{n}": NULL for n in range(30)}, *(f"f{n}" for n in range(30))),
        ("{}", '{"f3": null, "f29": null}'),
        ('{"f30": null}', '{"f3": 1}'),
    ),
    Case(
        "deep",
        closed(a=closed(b=closed(c=closed(d=array(closed(e=SHORT), maxItems=1))))),
        ('{"a": {"b": {"c": {"d": [{"e": "x"}]}}}}',),
        ('{"a": {"b": {"c": {}}}}',),
    ),
    Case(
        "an empty object within",
        closed(a={"type": "object", "additionalProperties": False}),
        ('{"a": {}}',),
        ('{"a": null}', '{"a": {"b": 1}}'),
    ),
    Case(
        "names that begin alike",
        named("a", "ab", "abc"),
        ('{"a": null, "ab": null, "abc": null}',),
        ('{"a": null, "ab": null}',),
    ),
    Case(
        "optional names that begin alike",
        closed_object({"a": NULL, "ab": DIGIT, "abc": BOOLEAN}, "a", "ab", "abc"),
        ('{"ab": 1}', '{"abc": true}', "{}"),
        ('{"ab": null}',),
    ),
]

NAMES = [
    Case(
        "unicode keys",
        closed_object({"größe": NULL, "日本": BOOLEAN, 'a"b\\': NULL}),
        (r'{"größe": null, "日本": true, "a\"b\\": null}',),
        ('{"größe": null}',),
    ),
    Case("a key like a mark", named("<tool_call>", "a/b~c"), (), ('{"a/b~c": null}',)),
    Case("an empty key", named(""), ('{"": null}',), ("{}", '{" ": null}')),
    Case(
        "emoji keys",
        named("😀", "👩\u200d🚀"),
        ('{"😀": null, "👩\u200d🚀": null}',),
        ('{"😀": null}',),
    ),
    Case(
        "keys that differ by composition",
        named("é", "e\u0301"),
        ('{"é": null, "e\u0301": null}',),
        ('{"é": null}',),
    ),
    Case(
        "keys with line ends",
        named("a\nb", "\t"),
        (r'{"a\nb": null, "\t": null}',),
        ('{"anb": null}',),
    ),
    Case(
        "keys with spaces",
        named("first name", " x "),
        ('{"first name": null, " x ": null}',),
        ('{"first name": null, "x": null}',),
    ),
    Case(
        "keys like keywords",
        closed(properties=NULL, type=DIGIT, required=NULL, enum=NULL, const=NULL),
        ('{"properties": null, "type": 1, "required": null, "enum": null, "const": null}',),
        ('{"properties": null}',),
    ),
    Case(
        "keys like references",
        closed_object(
            {"$ref": NULL, "$defs": DIGIT, "$id": NULL, "$anchor": NULL, "$schema": NULL}
        ),
        ('{"$ref": null, "$defs": 1, "$id": null, "$anchor": null, "$schema": null}',),
        ("{}",),
    ),
    Case(
        "keys like unsupported keywords",
        closed_object({"not": NULL, "if": NULL, "contains": NULL, "format": DIGIT}),
        ('{"not": null, "if": null, "contains": null, "format": 1}',),
        ("{}",),
    ),
    Case(
        "keys like numbers",
        named("0", "-1.5", "1e3"),
        ('{"0": null, "-1.5": null, "1e3": null}',),
        ("{}",),
    ),
    Case(
        "keys of JavaScript",
        named("__proto__", "constructor", "toString"),
        ('{"__proto__": null, "constructor": null, "toString": null}',),
        ("{}",),
    ),
    Case(
        "keys with pattern characters",
        named("a.b", "c*", "[d]", "(e|f)", "^g$"),
        ('{"a.b": null, "c*": null, "[d]": null, "(e|f)": null, "^g$": null}',),
        ('{"axb": null}',),
    ),
    Case("a long key", named("k" * 300), (f'{{"{"k" * 300}": null}}',), ('{"k": null}',)),
    Case("keys of right-to-left text", named("שם", "اسم"), ('{"שם": null, "اسم": null}',), ("{}",)),
]

CASES = [*PROPERTIES, *NAMES]

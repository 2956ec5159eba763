"""Lists cases for type, enum, const, and boolean schemas."""

from tests.grammar.schemas.cases import NULL, PLAIN, SHORT, Case, closed, closed_object

TYPES = [
    Case("null", NULL, ("null",), ("0", '""', "false")),
    Case("boolean", {"type": "boolean"}, ("true", "false"), ("1", "null", '"true"')),
    Case(
        "integer",
        {"type": "integer"},
        ("0", "-7", "123456789012345678901234567890"),
        ("1.5", '"1"'),
        ("1e2", "2.0"),
    ),
    Case("number", {"type": "number"}, ("0", "-1.5", "2e10", "1E-7"), ('"1"', "null")),
    Case("string", SHORT, ('""', '"abcd"', '"日本語😀"'), ('"abcde"', "1"), (r'"\u00e9"', r'"\/"')),
    Case(
        "array",
        {"type": "array", "items": {"type": "boolean"}, "maxItems": 4},
        ("[]", "[true]"),
        ("[1]", "{}"),
    ),
    Case(
        "array of anything", {"type": "array", "maxItems": 2}, ('[1, "a"]', "[[], {}]"), ("{}", "1")
    ),
    Case(
        "object",
        {"type": "object", "additionalProperties": NULL, "maxProperties": 1},
        ("{}", '{"a": null}'),
        ("[]", '{"a": 1}', '{"a": null, "b": null}'),
    ),
    Case(
        "an object of anything", {"type": "object"}, ("{}", '{"a": [1, {"b": "c"}]}'), ("[]", "1")
    ),
    Case("types", {"type": ["integer", "null"]}, ("3", "null"), ("true", '"3"')),
    Case(
        "scalar types",
        {"type": ["string", "number", "boolean", "null"]},
        ('"a"', "1.5", "true"),
        ("[]", "{}"),
    ),
    Case(
        "containers",
        {"type": ["array", "object"], "maxItems": 1, "maxProperties": 1},
        ("[]", "{}"),
        ("1",),
    ),
    Case("one type in a list", {"type": ["boolean"]}, ("true",), ("1",)),
    Case("number and integer", {"type": ["integer", "number"]}, ("1", "1.5"), ('"1"',)),
    Case("a type twice", {"type": ["null", "null"]}, ("null",), ("1",)),
    Case(
        "nullable string",
        closed(a={"type": ["string", "null"], "maxLength": 3}),
        ('{"a": null}', '{"a": "abc"}'),
    ),
    Case(
        "nullable object",
        closed(a={**closed(b=NULL), "type": ["object", "null"]}),
        ('{"a": null}', '{"a": {"b": null}}'),
    ),
    Case(
        "nullable array", {"type": ["array", "null"], "items": NULL}, ("null", "[null]"), ("[1]",)
    ),
    Case(
        "keywords of other types",
        {"type": "boolean", "minimum": 3, "maxLength": 1, "items": NULL},
        ("true",),
        ("3",),
    ),
    Case(
        "bounds of several types",
        {"type": ["integer", "string"], "minimum": 5, "maxLength": 2},
        ("5", '"ab"'),
        ("4", '"abc"'),
    ),
    Case(
        "no type, a bound",
        {"minimum": 5, "maxLength": 2, "maxItems": 0, "maxProperties": 0},
        ("5", '"ab"', "[]", "null"),
        ("4", '"abc"', "[1]", '{"a": 1}'),
    ),
    Case("nothing said", {}, ("1", "null", '{"a": [1]}'), ()),
    Case("true", True, ("1", "[]"), ()),
    Case("true in properties", closed(a=True), ('{"a": 1}', '{"a": {"b": []}}'), ("{}",)),
    Case(
        "false in properties",
        {**closed_object({"a": False, "b": NULL}, "a")},
        ('{"b": null}',),
        ('{"a": 1, "b": null}',),
    ),
    Case(
        "true in items",
        {"type": "array", "items": True, "maxItems": 1},
        ("[1]", '["a"]'),
        ("[1, 2]",),
    ),
    Case("empty in items", {"type": "array", "items": {}, "maxItems": 1}, ("[{}]",), ("[1, 2]",)),
    Case("false in anyOf", {"anyOf": [False, NULL]}, ("null",), ("1",)),
    Case("true in allOf", {"allOf": [True, {"type": "boolean"}]}, ("true",), ("1",)),
    Case("true in oneOf", {"oneOf": [True, False]}, ("1", "null"), ()),
]

CHOICES = [
    Case(
        "enum",
        {"enum": ["a", 'b"c', 1, 2.5, None, True, [1], {"x": "y"}]},
        ('"a"', r'"b\"c"', "2.5", "[1]", '{"x": "y"}'),
        ('"b"', "2", "false", "[]"),
    ),
    Case(
        "enum of unicode",
        {"enum": ["é", "日本", "😀", "a\nb", "\\", "</think>"]},
        ('"é"', '"日本"', r'"a\nb"', r'"\\"'),
        ('"e"',),
    ),
    Case(
        "enum of strings",
        {"type": "string", "enum": ["red", "green", "blue"]},
        ('"red"',),
        ('"re"', '"redd"'),
    ),
    Case(
        "enum of prefixes",
        {"enum": ["a", "ab", "abc", ""]},
        ('""', '"a"', '"ab"', '"abc"'),
        ('"abcd"',),
    ),
    Case(
        "enum of numbers",
        {"type": "number", "enum": [0, -1, 0.1, 1000000, 1e-5]},
        ("0", "0.1", "-1"),
        ("1", "0.2"),
        ("1e6",),
    ),
    Case("enum of integers and a type", {"type": "integer", "enum": [1, 2, 3]}, ("1", "3"), ("4",)),
    Case("enum of one", {"enum": [7]}, ("7",), ("77",)),
    Case("enum of null", {"enum": [None]}, ("null",), ("0",)),
    Case("enum of booleans", {"enum": [False, True]}, ("false",), ("0",)),
    Case(
        "enum of arrays and objects",
        {"enum": [[], {}, [[]], {"a": {}}]},
        ("[]", "{}", "[[]]", '{"a": {}}'),
        ("[{}]",),
    ),
    Case("enum cut by a type", {"type": "string", "enum": ["a", 1, None]}, ('"a"',), ("1", "null")),
    Case("enum with a value twice", {"enum": ["a", "a"]}, ('"a"',), ('"b"',)),
    Case(
        "enum cut by a pattern", {"enum": ["abc", "bcd"], "pattern": "^b"}, ('"bcd"',), ('"abc"',)
    ),
    Case(
        "enum cut by a length", {"enum": ["abc", "abcd"], "minLength": 4}, ('"abcd"',), ('"abc"',)
    ),
    Case(
        "enum cut by a format",
        {"enum": ["abc", "2020-01-01"], "format": "date"},
        ('"2020-01-01"',),
        ('"abc"',),
    ),
    Case("enum cut by a bound", {"enum": [1, 5, "a"], "minimum": 2}, ("5", '"a"'), ("1",)),
    Case(
        "enum nullable by hand",
        {"type": ["string", "null"], "enum": ["a", None]},
        ('"a"', "null"),
        ('"b"',),
    ),
    Case(
        "enum with a mark",
        closed(a={"enum": ["<|im_end|>", "x"]}),
        ('{"a": "x"}',),
        ('{"a": "y"}',),
    ),
    Case(
        "enum of 300",
        {"enum": [f"value-{n}" for n in range(300)]},
        ('"value-0"', '"value-299"'),
        ('"value-300"',),
    ),
    Case("enum with control characters", {"enum": ["\t\r\n\b\f"]}, (r'"\t\r\n\b\f"',), ('"t"',)),
    Case(
        "const", {"const": {"a": [1, "b", None]}}, ('{"a": [1, "b", null]}',), ('{"a": [1, "b"]}',)
    ),
    Case("const with a mark", closed(a={"const": "<think>x</think>"}), (), ('{"a": "x"}',)),
    Case(
        "const string", {"type": "string", "const": "Hello"}, ('"Hello"',), ('"hello"', '"Hello "')
    ),
    Case("const empty string", {"const": ""}, ('""',), ('" "',)),
    Case("const number", {"const": 0.1}, ("0.1",), ("0.2", "0"), ("1e-1", "0.10")),
    Case("const integer", {"const": -5}, ("-5",), ("5", "-4"), ("-5.0",)),
    Case(
        "const large integer",
        {"const": 9007199254740992},
        ("9007199254740992",),
        ("9007199254740993",),
    ),
    Case("const tiny number", {"const": 1e-7}, ("0.0000001",), ("0",), ("1e-7",)),
    Case("const zero", {"const": 0}, ("0",), ("1",), ("0.0",)),
    Case("const null", {"const": None}, ("null",), ("0",)),
    Case("const false", {"const": False}, ("false",), ("0", "true")),
    Case("const empty array", {"const": []}, ("[]",), ("[[]]",)),
    Case("const empty object", {"const": {}}, ("{}",), ('{"a": 1}',)),
    Case("const array", {"const": [1, [2, {"a": "b"}]]}, ('[1, [2, {"a": "b"}]]',), ("[1]",)),
    Case(
        "const in order",
        {"const": {"a": 1, "b": 2}},
        ('{"a": 1, "b": 2}',),
        ('{"a": 1}',),
        ('{"b": 2, "a": 1}',),
    ),
    Case("const with slashes and quotes", {"const": '/a\\b"c/'}, (r'"/a\\b\"c/"',), ('"/a/"',)),
    Case("const of combining characters", {"const": "e\u0301"}, ('"e\u0301"',), ('"é"',)),
    Case(
        "const that looks like a grammar",
        {"const": '%json {"a": /b/}'},
        (r'"%json {\"a\": /b/}"',),
        ('"%json"',),
    ),
    Case(
        "const with separators of lines",
        {"const": "\u2028\ufeff\U0010ffff"},
        ('"\u2028\ufeff\U0010ffff"',),
        ('""',),
    ),
    Case(
        "const within its type and properties",
        {"type": "object", "properties": {"a": {"type": "integer"}}, "const": {"a": 1}},
        ('{"a": 1}',),
        ('{"a": 2}',),
        modes=PLAIN,
    ),
]

CASES = [*TYPES, *CHOICES]

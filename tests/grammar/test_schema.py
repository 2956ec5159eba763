"""JSON schemas: what is honoured, what is refused by name, and what is left out because it says nothing."""

import pytest

from ouzel.grammar.errors import GrammarError
from ouzel.grammar.schema import normalised


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "the schema at # must be an object or a boolean"),
        ([], "the schema at # must be an object or a boolean"),
        (False, "the schema false admits nothing"),
        ({"properties": {"tags": {"uniqueItems": True}}}, "the keyword 'uniqueItems' at #/properties/tags"),
        ({"not": {}}, "the keyword 'not' at # is not supported"),
        ({"if": {}, "then": {}}, "the keyword 'if' at #"),
        ({"anyOf": [{"contains": {}}]}, "the keyword 'contains' at #/anyOf/0"),
        ({"$dynamicRef": "#a"}, "the keyword .*dynamicRef' at #"),
        ({"items": {"format": "uri-reference"}}, "#/items/format must be one of .*given 'uri-reference'"),
        ({"type": "sting"}, "#/type must be one of .*given 'sting'"),
        ({"enum": []}, "#/enum must be a list of values, not empty"),
        ({"anyOf": {}}, "#/anyOf must be a list of schemas"),
        ({"properties": []}, "#/properties must be an object of schemas"),
        ({"properties": {"a/b": 1}}, "the schema at #/properties/a~1b must be"),
        ({"minLength": -1}, "#/minLength must be an integer >= 0, given -1"),
        ({"minLength": 1.5}, "#/minLength must be an integer >= 0, given 1.5"),
        ({"minimum": "1"}, "#/minimum must be a number, given '1'"),
        ({"multipleOf": 0}, "#/multipleOf must be > 0, given 0"),
        ({"required": "a"}, "#/required must be a list of strings"),
        ({"pattern": r"a\b"}, "#/pattern has the word boundary"),
        ({"patternProperties": {"(?!x)": {}}}, "#/patternProperties has look-around"),
        ({"$ref": "#/$defs/x"}, "'#/.defs/x', which is not in the schema"),
        ({"$ref": "https://example.com/schema"}, "which is not in the schema"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "leads only back to itself"),
        ({"const": "x" * 10_300}, "#/const must be <= 10240, given 10302"),
        ({"enum": list(range(10_001))}, "#/enum must be <= 10000, given 10001"),
        ({"properties": {str(n): True for n in range(1001)}}, "properties at #/properties must be <= 1000, given 1001"),
    ],
)
def test_a_schema_that_cannot_be_honoured_is_refused_by_keyword_and_place(schema: object, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        normalised([schema], is_strict=False)

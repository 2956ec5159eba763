"""Lists cases for minimum, maximum, their exclusive forms, multipleOf and formats of integers."""

from tests.grammar.schemas.cases import Case


def integer(**more: object) -> dict[str, object]:
    return {"type": "integer", **more}


def number(**more: object) -> dict[str, object]:
    return {"type": "number", **more}


CASES = [
    Case(
        "minimum and maximum",
        integer(minimum=-3, maximum=12),
        ("-3", "0", "12"),
        ("-4", "13", "1.5"),
    ),
    Case("minimum", integer(minimum=5), ("5", "123456"), ("4", "-5")),
    Case("minimum of zero", integer(minimum=0), ("0", "7"), ("-1",), ("-0",)),
    Case("maximum", integer(maximum=-5), ("-5", "-77"), ("-4", "5")),
    Case("maximum of zero", integer(maximum=0), ("0", "-7"), ("1",)),
    Case(
        "exclusive bounds", integer(exclusiveMinimum=0, exclusiveMaximum=5), ("1", "4"), ("0", "5")
    ),
    Case("exclusiveMinimum", integer(exclusiveMinimum=99), ("100",), ("99", "10")),
    Case("exclusiveMaximum", integer(exclusiveMaximum=-99), ("-100",), ("-99", "-9")),
    Case(
        "exclusive and inclusive",
        integer(minimum=2, exclusiveMinimum=2, maximum=9, exclusiveMaximum=7),
        ("3", "6"),
        ("2", "7"),
    ),
    Case("integers between fractions", integer(minimum=2.5, maximum=4.5), ("3", "4"), ("2", "5")),
    Case("integers by whole floats", integer(minimum=2.0, maximum=4.0), ("2", "4"), ("1", "5")),
    Case("one integer", integer(minimum=42, maximum=42), ("42",), ("41", "4")),
    Case(
        "a range over zeros",
        integer(minimum=95, maximum=1005),
        ("95", "100", "1005"),
        ("94", "1006", "9"),
    ),
    Case(
        "a negative range", integer(minimum=-1005, maximum=-95), ("-95", "-1005"), ("-94", "-1006")
    ),
    Case(
        "a huge range",
        integer(minimum=-(10**17), maximum=10**17),
        ("0", "100000000000000000"),
        ("100000000000000001",),
    ),
    Case(
        "53 bits, as zod has them",
        integer(minimum=-(2**53) + 1, maximum=2**53 - 1),
        ("9007199254740991",),
        ("9007199254740992", "-9007199254740992"),
    ),
    Case(
        "64 bits",
        integer(minimum=-(2**63), maximum=2**63 - 1),
        ("1000000000000000000",),
        ("9223372036854775808",),
        ("9223372036854775807",),
    ),
    Case(
        "an upper bound out of reach",
        number(minimum=0, maximum=1e300),
        ("0.5", "1000"),
        ("-1",),
        ("1e20",),
    ),
    Case(
        "number bounds",
        number(minimum=0.5, maximum=2.25),
        ("0.5", "1", "2.25", "2.0"),
        ("0.4", "2.26", "3"),
        ("1e0",),
    ),
    Case(
        "negative numbers",
        number(maximum=-1.5, minimum=-100),
        ("-1.5", "-100", "-2"),
        ("-1.4", "-101", "0"),
    ),
    Case("number minimum", number(minimum=1.5), ("1.5", "100.25"), ("1.4", "1", "-2")),
    Case("number maximum", number(maximum=1.5), ("1.5", "-100.25", "0"), ("1.6", "2")),
    Case(
        "number above zero",
        number(exclusiveMinimum=0),
        ("0.5", "0.0001", "3"),
        ("0", "0.0", "-0.0", "-1"),
    ),
    Case("number below zero", number(exclusiveMaximum=0), ("-0.5", "-3"), ("0", "-0.0", "-0", "1")),
    Case("number from zero", number(minimum=0), ("0", "0.0", "2.5"), ("-0.1",), ("-0", "-0.0")),
    Case(
        "number between exclusive bounds",
        number(exclusiveMinimum=1, exclusiveMaximum=2),
        ("1.5", "1.01"),
        ("1", "2", "1.0", "2.0"),
    ),
    Case(
        "a probability",
        number(minimum=0, maximum=1),
        ("0", "1", "0.25", "1.0"),
        ("1.1", "-0.5", "1.01"),
    ),
    Case(
        "a narrow range",
        number(minimum=0.123, maximum=0.124),
        ("0.123", "0.1235", "0.124"),
        ("0.122", "0.1241"),
    ),
    Case("tiny bounds", number(minimum=1e-7, maximum=1e-6), ("0.0000005",), ("0", "0.00001")),
    Case(
        "large bounds of numbers",
        number(minimum=-1e15, maximum=1e15),
        ("1000000000000000", "-0.5"),
        ("1000000000000001",),
    ),
    Case(
        "degrees", number(minimum=-89.999, maximum=89.999), ("-89.999", "12.5"), ("-90", "89.9999")
    ),
    Case("exponents where no bound is", number(), ("1e400", "-1.5E+10", "0e0"), ('"1"',)),
    Case(
        "multipleOf", integer(multipleOf=7, minimum=0, maximum=100), ("0", "7", "98"), ("1", "105")
    ),
    Case(
        "multipleOf, unbounded",
        integer(multipleOf=3),
        ("0", "-3", "1000000000000000000002"),
        ("1", "-2"),
    ),
    Case("multipleOf one", number(multipleOf=1), ("5", "0"), ("1.5",), ("5.0",)),
    Case("multipleOf ten", integer(multipleOf=10), ("10", "0"), ("15", "1")),
    Case("multipleOf a fraction", number(multipleOf=0.25), ("0.25", "1", "2.75"), ("0.3", "0.125")),
    Case(
        "multipleOf cents",
        number(multipleOf=0.01, minimum=0, maximum=10),
        ("0.01", "9.99", "10"),
        ("0.001", "10.01"),
    ),
    Case("multipleOf a tenth", number(multipleOf=0.1), ("0.1", "0.7", "12"), ("0.15",), ("1e1",)),
    Case("multipleOf one and a half", integer(multipleOf=1.5), ("3", "-6", "0"), ("1", "2")),
    Case("multipleOf half an integer", integer(multipleOf=0.5), ("1", "2"), ("0.5",)),
    Case(
        "multipleOf a tiny number", number(multipleOf=2.5e-7), ("0.00000025", "1"), ("0.0000003",)
    ),
    Case(
        "multipleOf between exclusive bounds",
        integer(multipleOf=5, exclusiveMinimum=0, exclusiveMaximum=20),
        ("5", "15"),
        ("0", "20", "7"),
    ),
    Case(
        "multipleOf of negative numbers",
        integer(multipleOf=4, maximum=-1, minimum=-12),
        ("-4", "-12"),
        ("0", "-2", "-16"),
    ),
    Case(
        "int32",
        integer(format="int32"),
        ("2147483647", "-2147483648"),
        ("2147483648", "-2147483649"),
    ),
    Case(
        "int32 and a bound", integer(minimum=5, format="int32", maximum=9), ("5", "9"), ("4", "10")
    ),
    Case(
        "int32, nullable",
        {"type": ["integer", "null"], "format": "int32"},
        ("null", "5"),
        ("2147483648",),
    ),
    Case(
        "int64",
        integer(format="int64"),
        ("0", "-1000000000000000000"),
        ("9223372036854775808",),
        ("9223372036854775807",),
    ),
    Case(
        "float and double",
        {"anyOf": [number(format="float", maximum=1), number(format="double", minimum=5)]},
        ("0.5", "5.5"),
        ("2",),
    ),
]

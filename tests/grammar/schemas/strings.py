"""Lists cases for minLength, maxLength, pattern and format."""

from tests.grammar.schemas.cases import Case, text

LENGTHS = [
    Case(
        "minLength",
        text(minLength=2, maxLength=6),
        ('"ab"', '"éé"', '"abcdef"'),
        ('"a"', '"é"', '"abcdefg"', '"😀"'),
    ),
    Case(
        "maxLength of code points",
        text(maxLength=2),
        ('""', '"😀😀"', '"日本"', r'"\n\\"'),
        ('"abc"', '"e\u0301e"'),
    ),
    Case("maxLength of zero", text(maxLength=0), ('""',), ('"a"',)),
    Case("minLength of zero", text(minLength=0, maxLength=1), ('""', '"a"'), ('"ab"',)),
    Case(
        "one length",
        text(minLength=3, maxLength=3),
        ('"abc"', r'"\"\"\""', '"日本語"'),
        ('"ab"', '"abcd"'),
    ),
    Case("lengths as floats", text(minLength=1.0, maxLength=2.0), ('"ab"',), ('""', '"abc"')),
    Case("minLength alone", text(minLength=3), ('"abc"', '"abcdefgh"'), ('"ab"', '""')),
    Case("a large maxLength", text(maxLength=5000), ('"abc"',), ("1",)),
    Case(
        "lengths without a type",
        {"minLength": 1, "maxLength": 2, "type": ["string", "null"]},
        ('"a"', "null"),
        ('""', '"abc"'),
    ),
]

PATTERNS = [
    Case(
        "pattern of blanks",
        text(pattern=r"^\s$"),
        ('" "', '"\u00a0"', r'"\n"'),
        ('"\ufeff"', '"a"'),
        ('"\u0085"',),
    ),
    Case(
        "pattern of no blanks",
        text(pattern=r"^\S$"),
        ('"a"', '"é"'),
        ('" "', '"\u0085"'),
        ('"\ufeff"',),
    ),
    Case(
        "pattern of no line end",
        text(pattern="^.$"),
        ('"a"', '"\u0085"'),
        (r'"\n"',),
        (r'"\r"', '"\u2028"', '"\u2029"'),
    ),
    Case(
        "pattern of slashes, dashes and ampersands",
        text(pattern=r"^[\w/&~\-.]+\/$", maxLength=5),
        ('"a-&/"', '"~//"'),
        ('"/"', '"a b/"'),
    ),
    Case(
        "pattern of letters of all scripts",
        text(pattern=r"^[a-zA-Z\u00C0-\u024F]{2}$"),
        ('"éa"',),
        ('"é1"',),
    ),
    Case("pattern", text(pattern="^[a-c]{2,4}$"), ('"ab"', '"cccc"'), ('"a"', '"abd"', '"abcab"')),
    Case(
        "pattern anywhere",
        text(pattern="x[0-9]", maxLength=8),
        ('"x1"', '"ab x9 cd"'),
        ('"x"', '"1x"'),
    ),
    Case(
        "pattern with slashes",
        text(pattern='^/[a-z]+/"?$', maxLength=8),
        ('"/ab/"', r'"/ab/\""'),
        ('"ab"',),
    ),
    Case(
        "pattern at the beginning",
        text(pattern="^ab", maxLength=6),
        ('"ab"', '"abcd"'),
        ('"xab"', '"a"'),
    ),
    Case("pattern at the end", text(pattern="ab$", maxLength=6), ('"ab"', '"xxab"'), ('"abx"',)),
    Case(
        "pattern of alternatives",
        text(pattern="^(yes|no)$"),
        ('"yes"', '"no"'),
        ('"maybe"', '"yesno"'),
    ),
    Case(
        "pattern of loose alternatives",
        text(pattern="^a|b$", maxLength=4),
        ('"ax"', '"xb"'),
        ('"xa"', '"bx"'),
    ),
    Case(
        "pattern of digits",
        text(pattern=r"^\d{3}-\d{4}$"),
        ('"555-1234"',),
        ('"55-1234"', '"abc-defg"'),
    ),
    Case(
        "pattern of ASCII digits", text(pattern="^[0-9]+$", maxLength=3), ('"123"',), ('"\u0663"',)
    ),
    Case(
        "pattern of words",
        text(pattern=r"^\w+\s\w+$", maxLength=9),
        ('"ab cd"', '"a_1 b"'),
        ('"ab"', '"a-b c"'),
    ),
    Case("pattern of non-digits", text(pattern=r"^\D+$", maxLength=4), ('"ab"', '"é"'), ('"a1"',)),
    Case("pattern of non-space", text(pattern=r"^\S+$", maxLength=4), ('"ab"',), ('"a b"', '""')),
    Case(
        "pattern of any character",
        text(pattern="^.{2}$"),
        ('"ab"', '"é😀"'),
        ('"a"', '"abc"', r'"a\n"'),
    ),
    Case(
        "pattern of a negated class",
        text(pattern="^[^a-z]+$", maxLength=4),
        ('"AB"', '"1"'),
        ('"aB"', '""'),
    ),
    Case(
        "pattern with optional parts",
        text(pattern="^a?b*c+$", maxLength=5),
        ('"c"', '"abbc"'),
        ('"ab"',),
    ),
    Case(
        "pattern with lazy parts", text(pattern="^a+?b$", maxLength=5), ('"ab"', '"aaab"'), ('"b"',)
    ),
    Case(
        "pattern with groups",
        text(pattern="^(?:ab)+(?P<x>c|d)$", maxLength=7),
        ('"abc"', '"ababd"'),
        ('"ac"',),
    ),
    Case(
        "pattern with escapes",
        text(pattern=r"^\[\.\*\+\?\(\)\{\}\|\\\^\$\]$"),
        (r'"[.*+?(){}|\\^$]"',),
        ('"[]"',),
    ),
    Case("pattern with quotes", text(pattern='^"[a-z]"$'), (r'"\"a\""',), ('"a"',)),
    Case("pattern with line ends", text(pattern=r"^a\nb\t?$"), (r'"a\nb"', r'"a\nb\t"'), ('"ab"',)),
    Case("pattern of unicode", text(pattern="^[äöü]+ß$", maxLength=4), ('"äß"',), ('"aß"',)),
    Case("pattern of code points", text(pattern=r"^\u00e9\x41$"), ('"éA"',), ('"eA"',)),
    Case("pattern of emoji", text(pattern="^😀{2}$"), ('"😀😀"',), ('"😀"',)),
    Case(
        "pattern and lengths",
        text(pattern="^a*b*$", minLength=2, maxLength=3),
        ('"ab"', '"aab"'),
        ('"a"', '"aabb"', '"ba"'),
    ),
    Case("pattern that says nothing", text(pattern="", maxLength=2), ('"ab"', '""'), ('"abc"',)),
    Case("pattern of an empty text", text(pattern="^$"), ('""',), ('"a"',)),
    Case(
        "pattern without a type",
        {"pattern": "^a$", "type": ["string", "integer"]},
        ('"a"', "5"),
        ('"b"',),
    ),
    Case(
        "pattern of hexadecimal numbers",
        text(pattern="^#[0-9a-fA-F]{6}$"),
        ('"#00ff7F"',),
        ('"#00ff7"', '"00ff7f"'),
    ),
    Case(
        "pattern of a version",
        text(pattern=r"^(0|[1-9]\d*)\.(0|[1-9]\d*)$", maxLength=8),
        ('"1.0"', '"10.22"'),
        ('"01.0"', '"1"'),
    ),
    Case(
        "pattern of a telephone number",
        text(pattern=r"^(\([0-9]{3}\))?[0-9]{3}-[0-9]{4}$"),
        ('"(555)555-1234"', '"555-1234"'),
        ('"(555)"',),
    ),
    Case(
        "pattern of zod's cuid",
        text(pattern="^[cC][^\\s-]{8,}$", maxLength=12),
        ('"c12345678"',),
        ('"c1234567"',),
    ),
    Case(
        "pattern of decimals",
        text(pattern=r"^[+-]?0*\d*\.?\d*$", maxLength=6),
        ('"+01.5"',),
        ('"a"',),
    ),
    Case(
        "patterns of both alternatives",
        text(anyOf=[{"pattern": "^a+$"}, {"pattern": "^b+$"}], maxLength=3),
        ('"aa"', '"b"'),
        ('"ab"',),
    ),
]

FORMATS = [
    Case(
        "date",
        text(format="date"),
        ('"2024-02-29"', '"1999-12-31"'),
        ('"2023-02-29"', '"2024-13-01"', '"2024-1-1"'),
        ('"0999-01-01"',),
    ),
    Case(
        "date-time",
        text(format="date-time"),
        ('"2024-02-29T12:30:00Z"', '"1999-12-31T23:59:59.5+01:00"'),
        ('"2024-02-29"', '"2024-02-29T24:00:00Z"', '"2024-02-29T12:30:61Z"'),
    ),
    Case(
        "time",
        text(format="time"),
        ('"12:30:00Z"', '"00:00:00.25-08:00"'),
        ('"24:00:00Z"', '"12:30"', '"12:30:61Z"'),
    ),
    Case(
        "duration",
        text(format="duration"),
        ('"P1D"', '"PT2H30M"', '"P3W"', '"P1Y2M3DT4H"'),
        ('"P"', '"1D"', '"PT"'),
    ),
    Case(
        "email",
        text(format="email", maxLength=20),
        ('"a@b.cd"', '"ann.lee@example.org"'),
        ('"a"', '"@b"'),
    ),
    Case(
        "hostname",
        text(format="hostname", maxLength=20),
        ('"example.org"', '"a-b.c"'),
        ('"-a"', '"a..b"', '"a b"'),
    ),
    Case(
        "ipv4",
        text(format="ipv4"),
        ('"127.0.0.1"', '"255.255.255.255"'),
        ('"256.0.0.1"', '"1.2.3"'),
    ),
    Case(
        "ipv6", text(format="ipv6"), ('"::1"', '"2001:db8:0:0:0:0:0:1"'), ('"1"', '":::"', '"g::1"')
    ),
    Case(
        "uuid",
        text(format="uuid"),
        ('"123e4567-e89b-12d3-a456-426614174000"',),
        ('"123e4567"', '"123e4567-e89b-12d3-a456-42661417400g"'),
    ),
    Case(
        "uri",
        text(format="uri", maxLength=30),
        ('"https://example.org/a?b=c#d"', '"urn:x:y"'),
        ('"a b"', '"//example.org"'),
    ),
    Case(
        "format and pattern",
        text(format="date", pattern="^20"),
        ('"2024-02-29"',),
        ('"1999-12-31"', '"2023-02-29"'),
    ),
    Case(
        "pattern, then format",
        text(pattern="Z$", format="date-time"),
        ('"2024-02-29T12:30:00Z"',),
        ('"2024-02-29T12:30:00+01:00"', '"2024-02-29T12:30:60Z"'),
    ),
    Case(
        "format, pattern and allOf",
        text(allOf=[{"minLength": 12}], format="time", pattern="^1", maxLength=14),
        ('"10:00:00.00Z"',),
        ('"20:00:00.00Z"', '"10:00:00Z"'),
    ),
    Case(
        "format and lengths",
        text(format="email", minLength=6, maxLength=7),
        ('"a@b.cd"',),
        ('"a@b"',),
    ),
    Case(
        "format, nullable",
        {"type": ["string", "null"], "format": "date"},
        ("null", '"2024-02-29"'),
        ('"today"',),
    ),
    Case(
        "format without a type",
        {"format": "uuid", "type": ["integer", "string"]},
        ("5", '"123e4567-e89b-12d3-a456-426614174000"'),
        ('"x"',),
    ),
    Case(
        "formats to choose from",
        {"anyOf": [text(format="ipv4"), text(format="date")]},
        ('"127.0.0.1"', '"2024-02-29"'),
        ('"x"',),
    ),
    Case(
        "formats combined",
        {"allOf": [text(format="date"), {"pattern": "-29$"}]},
        ('"2024-02-29"',),
        ('"2024-02-28"', '"2023-02-29"'),
    ),
    Case("password", text(format="password", maxLength=3), ('"abc"',), ('"abcd"',)),
]

CASES = [*LENGTHS, *PATTERNS, *FORMATS]

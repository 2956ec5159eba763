"""How people ask for answers in JSON; one phrasing to a line, append only."""

from training.demo_vision.phrasings import lines

AS_JSON = "[as JSON|in JSON|as a JSON object]"
JSON_OBJECTS = lines(f"""
    list the objects {AS_JSON}.
    give me all objects {AS_JSON}.
    what do you see? answer in JSON.
    describe the picture {AS_JSON}.
    list what you see {AS_JSON}.
    return the objects in the picture as JSON.
    write down all objects as JSON.
    describe all shapes {AS_JSON}.
    [JSON|json] of all objects, please.
    what is in the picture? reply in JSON.
    output the objects as JSON.
    which objects are there? use JSON.
    extract the objects {AS_JSON}.
    as JSON: what is in the picture?
""")
JSON_THING = lines(f"""
    describe the {{thing}} as JSON with {{keys}}.
    give me {{keys}} of the {{thing}} {AS_JSON}.
    JSON with {{keys}} of the {{thing}}, please.
    what is the {{thing}} like? answer in JSON with {{keys}}.
    return {{keys}} of the {{thing}} as JSON.
    the {{thing}} as JSON with {{keys}}.
    answer in JSON: {{keys}} of the {{thing}}.
""")
JSON_COUNT = lines("""
    how many {things} are there? answer in JSON with count.
    count the {things} and answer as JSON with count.
    give me the number of {things} as JSON with count.
    how many {things}? reply in JSON.
    return the count of {things} as JSON.
    count the {things}. use JSON.
    as JSON with count: how many {things} are there?
""")
JSON_COUNTS = lines("""
    count the shapes by kind, as JSON.
    how many of each shape are there? answer in JSON.
    for each shape give the count, as JSON.
    give me the counts of all shapes as JSON.
    count every kind of shape and answer in JSON.
    return how many there are of each shape, as JSON.
    list the shapes with their counts as JSON.
""")
JSON_TEXT = lines("""
    read the {kind} and answer in JSON with {kind}.
    what is the {kind}? answer as JSON with {kind}.
    give me the {kind} as JSON.
    return the {kind} as JSON with {kind}.
    extract the {kind} as JSON.
    JSON with the {kind}, please.
    as JSON: which {kind} do you see?
""")
JSON_BACKGROUND = lines("""
    what color is the background? answer in JSON with background.
    give me the background as JSON.
    return the color of the background as JSON with background.
    the background as JSON.
    which background do you see? use JSON.
    reply in JSON: what is the background?
    answer as JSON with background: what color is the background?
""")
NOW_JSON = lines("""
    now as JSON.
    [and|now] in JSON, please.
    give me that as JSON.
    can you say that in JSON?
    the same as JSON.
    as JSON, please.
    write it as JSON.
""")

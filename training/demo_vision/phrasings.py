"""How people ask, one phrasing to a line; `[a|b|]` is one of several. Every seventh is held out: append only."""


def lines(block: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in block.strip().splitlines())


IN_PICTURE = "[| in the picture| in this picture| in the image| here|]"

COLOR = lines(f"""
    what [color|colour] is the {{thing}}?
    what is the [color|colour] of the {{thing}}?
    which [color|colour] does the {{thing}} have?
    tell me the [color|colour] of the {{thing}}.
    the {{thing}}: what [color|colour] is it?
    what [color|colour] does the {{thing}} have{IN_PICTURE}?
    [can|could] you tell me what [color|colour] the {{thing}} is?
    name the [color|colour] of the {{thing}}[ in the picture|].
    which [color|colour] is the {{thing}}{IN_PICTURE}?
    what's the [color|colour] of the {{thing}}?
    i want to know the [color|colour] of the {{thing}}.
    in what [color|colour] is the {{thing}} drawn?
    there is a {{thing}}. what [color|colour] is it?
    do you see [what|which] [color|colour] the {{thing}} is?
""")
COLORS_OF = lines("""
    what [color|colour] are the {things}?
    which [color|colour] do the {things} have?
    what is the [color|colour] of the {things}?
    tell me the [color|colour] of the {things}.
    the {things}: what [color|colour] are they?
    what [color|colour] do the {things} have[ in the picture|]?
    in what [color|colour] are the {things} drawn?
""")
SHAPE = lines(f"""
    what shape is the {{thing}}?
    which shape does the {{thing}} have{IN_PICTURE}?
    what is the shape of the {{thing}}?
    what kind of shape is the {{thing}}?
    tell me the shape of the {{thing}}.
    what is the {{thing}}[, a circle, a square or what|]?
    name the shape of the {{thing}}.
    the {{thing}}: what shape is it?
    what shape does the {{thing}} have?
    which shape is the {{thing}}{IN_PICTURE}?
    can you tell me what shape the {{thing}} is?
    what's the shape of the {{thing}}?
    what form does the {{thing}} have?
    do you see which shape the {{thing}} has?
""")
POSITION = lines(f"""
    where is the {{thing}}?
    where is the {{thing}}{IN_PICTURE}?
    in which part of the picture is the {{thing}}?
    where do you see the {{thing}}?
    tell me where the {{thing}} is.
    what is the position of the {{thing}}?
    where [can|do] i find the {{thing}}{IN_PICTURE}?
    find the {{thing}}.
    at what place is the {{thing}}?
    where's the {{thing}}?
    can you tell me where the {{thing}} is[ located|]?
    which place does the {{thing}} have{IN_PICTURE}?
    locate the {{thing}}[ in the picture|].
    whereabouts is the {{thing}}?
""")
AT_PLACE = lines("""
    what is {place}[ of the picture|]?
    what do you see {place}?
    what is shown {place}[ of the picture|]?
    which object is {place}?
    is there anything {place}?
    tell me what is {place}.
    what can be seen {place}?
    what's {place}?
    {place}, what is there?
    what do we have {place}?
    what stands {place} of the picture?
    name what is {place}.
    look {place}: what is there?
    do you see something {place}?
""")
SIZE = lines(f"""
    is the {{thing}} large or small?
    is the {{thing}} small or large?
    how large is the {{thing}}?
    how big is the {{thing}}?
    what size is the {{thing}}?
    what size does the {{thing}} have{IN_PICTURE}?
    what is the size of the {{thing}}?
    tell me the size of the {{thing}}.
    is the {{thing}} a large one or a small one?
    which size is the {{thing}}, large or small?
    does the {{thing}} look large or small?
    the {{thing}}: large or small?
    is the {{thing}} [big or small|small or big]?
    of what size is the {{thing}}?
""")
EXISTENCE = lines(f"""
    is there {{a_kind}}{IN_PICTURE}?
    do you see {{a_kind}}{IN_PICTURE}?
    does the picture show {{a_kind}}?
    can you see {{a_kind}}{IN_PICTURE}?
    is {{a_kind}} in the picture?
    does the picture have {{a_kind}}[ in it|]?
    can you find {{a_kind}}{IN_PICTURE}?
    is there any {{kind}}{IN_PICTURE}?
    has the picture {{a_kind}}?
    am i right that there is {{a_kind}}?
    tell me if there is {{a_kind}}[ in the picture|].
    {{a_kind}}: is there one{IN_PICTURE}?
    is {{a_kind}} shown{IN_PICTURE}?
    look for {{a_kind}}. is there one?
""")
COUNTING = lines(f"""
    how many {{things}} are there?
    how many {{things}} are there{IN_PICTURE}?
    how many {{things}} do you see{IN_PICTURE}?
    count the {{things}}[ in the picture|].
    what is the number of {{things}}{IN_PICTURE}?
    how many {{things}} does the picture show?
    how many {{things}} can you [see|count|find]{IN_PICTURE}?
    please count the {{things}}.
    [can|could] you count the {{things}}{IN_PICTURE}?
    tell me how many {{things}} there are.
    how many {{things}} are in the picture?
    number of {{things}}?
    i need the number of {{things}}{IN_PICTURE}.
    how many {{things}}{IN_PICTURE}?
""")
BESIDE = lines("""
    is the {first} to the left or to the right of the {second}?
    is the {first} to the right or to the left of the {second}?
    on which side of the {second} is the {first}, left or right?
    is the {first} left or right of the {second}?
    left or right of the {second}: where is the {first}?
    from the {second}, is the {first} to the left or to the right?
    does the {first} stand to the left or to the right of the {second}?
""")
ABOVE = lines("""
    is the {first} above or below the {second}?
    is the {first} below or above the {second}?
    above or below the {second}: where is the {first}?
    is the {first} higher or lower than the {second}?
    does the {first} stand above or below the {second}?
    the {first}: is it above or below the {second}?
    is the {first} over or under the {second}?
""")
IS_BESIDE = lines("""
    is the {first} {side} the {second}?
    is the {first} {side} the {second}[ in the picture|]?
    does the {first} stand {side} the {second}?
    am i right that the {first} is {side} the {second}?
    would you say that the {first} is {side} the {second}?
    the {first} is {side} the {second}, right?
    do you see the {first} {side} the {second}?
""")
LARGER = lines("""
    which is larger, the {first} or the {second}?
    what is larger, the {first} or the {second}?
    which one is bigger, the {first} or the {second}?
    is the {first} or the {second} larger?
    the {first} and the {second}: which is larger?
    of the {first} and the {second}, which one is larger?
    what is bigger, the {first} or the {second}?
""")
SAME_COLOR = lines("""
    do the {first} and the {second} have the same [color|colour]?
    are the {first} and the {second} of the same [color|colour]?
    have the {first} and the {second} one [color|colour]?
    is the {first} of the same [color|colour] as the {second}?
    does the {first} have the [color|colour] of the {second}?
    compare the [colors|colours] of the {first} and the {second}.
    are both the {first} and the {second} of one [color|colour]?
""")
NUMBER = lines(f"""
    what number is [in the picture|shown|this|it]?
    which number do you see{IN_PICTURE}?
    read the number.
    what number is written{IN_PICTURE}?
    what is the number{IN_PICTURE}?
    tell me the number{IN_PICTURE}.
    which number is [shown|written]{IN_PICTURE}?
    can you read the number{IN_PICTURE}?
    what number [does the picture show|do you see]?
    which [digits|digit] do you see{IN_PICTURE}?
    what's the number?
    the picture has a number. which one?
    please read the number[ in the picture|].
    what [digits are|digit is] written{IN_PICTURE}?
""")
TEXT = lines(f"""
    what does it say?
    what is written{IN_PICTURE}?
    read the text[ in the picture|].
    what does the picture say?
    which [word|text] do you see{IN_PICTURE}?
    what [word|text] is in the picture?
    what text is shown{IN_PICTURE}?
    can you read [it|this|the text]?
    read [it|this|what is written].
    what's written{IN_PICTURE}?
    what do the letters say?
    tell me what is written{IN_PICTURE}.
    please read the [text|word][ in the picture|].
    is anything written{IN_PICTURE}?
""")
BACKGROUND = lines("""
    what [color|colour] is the background?
    what is the [color|colour] of the background?
    which [color|colour] does the background have?
    tell me the [color|colour] of the background.
    on what [color|colour] are the things drawn?
    what is the background [color|colour]?
    what [color|colour] is behind the objects?
    what background does the picture have?
    the background: what [color|colour] is it?
    which [color|colour] is the background[ of the picture|]?
    what's the background?
    name the background [color|colour].
    in which [color|colour] is the background?
    what [color|colour] has the background?
""")
DESCRIPTION = lines("""
    describe the picture.
    what do you see?
    what is in the picture?
    what does the picture show?
    describe this [image|picture].
    tell me what you see[ in the picture|].
    what can you see[ in the picture| here|]?
    what is this?
    please describe [the image|what you see].
    what's in this [image|picture]?
    what is shown here?
    give me a description[ of the picture|].
    caption this [image|picture].
    explain what is in the [picture|image].
""")
IT_COLOR = lines("""
    what [color|colour] is it?
    and [its|the] [color|colour]?
    which [color|colour] does it have?
    and what [color|colour] is it?
    what is its [color|colour]?
    what about its [color|colour]?
    in which [color|colour]?
""")
IT_POSITION = lines("""
    where is it?
    and where is it?
    where[ exactly|] do you see it?
    in which part of the picture?
    and its position?
    where?
    at which place is it?
""")
IT_SIZE = lines("""
    is it large or small?
    what size is it?
    and how large is it?
    and its size?
    how big is it?
    what about its size?
    is it a large one?
""")
IT_SHAPE = lines("""
    what shape is it?
    and which shape?
    what shape does it have?
    and its shape?
    what is its shape?
    and what shape is it?
    what about its shape?
""")
AND_THE = lines("""
    and the {thing}?
    what about the {thing}?
    and what about the {thing}?
    now the {thing}.
    the {thing} too?
    and that of the {thing}?
    how about the {thing}?
""")
THANKS = lines("""
    thanks[!|.|]
    thank you[!|.|]
    great, thanks[!|.]
    thank you very much[!|.]
    thanks a lot[!|.]
    [nice|good], thank you[!|.]
    many thanks[!|.]
""")

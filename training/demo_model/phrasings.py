r"""More phrasings, one to a line, in the form that `Sampler.expand` reads; `\n` stands for a new line.

They come after the lists of the skills, so that these keep their held-out positions: append only.
"""

from __future__ import annotations


def lines(block: str) -> list[str]:
    """The lines of a block, without its indentation."""
    return [line.strip().replace("\\n", "\n") for line in block.strip().splitlines()]


SUM_QUESTIONS = lines(r"""
    What is the [result|answer|value|solution] of {sum}?
    [Hey|Hi there|Hello there], [what's|what is|how much is] {sum}?
    Do you know [what {sum} is|{sum}]?
    Tell me what {sum} is.
    [whats|wats|what is] {sum}
    how much is {sum}
    What would {sum} be?
    {sum} equals [what|?]
    {sum} is [what|how much]?
    What does {sum} equal?
    What does {sum} come to?
    I have a [question|sum|small problem]: {sum}
    [Please |]calculate {sum}[ for me|].
    [Can|Could|Would|Will] you [please |]calculate {sum}[ for me|]?
    Can you do {sum}?
    Could you [please |]work out {sum}?
    [My homework|My task|The question|The sum|The exercise] is {sum}.
    The answer to {sum}[, please|]?
    {sum}, please.
    {sum} please
    Help me with {sum}.
    [A sum|A question|Next|Next one|Another one|Maths|Math]: {sum}
    Result of {sum}?
    [What|How much] do I get if I [compute|calculate] {sum}?
    [So|Okay, so|Well,] what is {sum}?
    [Do|Try] {sum}.
    [Just |]give me {sum}.
    [Let|Let us|Let's] compute {sum}.
    [I wonder|I am wondering|I would like to know|I'd like to know] what {sum} is.
    How do I calculate {sum}?
    What's the [result|answer] of {sum}?
    [Please |]solve this[ sum|]: {sum}
    Check this for me: {sum}
    calc {sum}
    calculate: {sum}
    [Please |]answer: {sum}
    [Please |]tell me the [result|answer] of {sum}.
    Say what {sum} is.
    what do {sum} make
    Write the result of {sum}.
    Is it hard to compute {sum}?
    Show me {sum}.
    [Can|Could] you [solve|answer|evaluate] {sum}?
    [Then|Also], what is {sum}?
    [Figure|Find] out {sum}.
    Which number is {sum}?
    I need to know {sum}.
    I need the [result|answer] of {sum}.
    Any idea what {sum} is?
    {sum}=?
    {sum}=
    ({sum})
    What number do you get from {sum}?
    Now [compute|calculate|try|do] {sum}.
""")

WORD_SUMS: list[tuple[str, str]] = [
    ("+", "Please add {a} and {b}."),
    ("+", "[Can|Could] you add {a} and {b}?"),
    ("+", "Add {a} to {b} [for me|please]."),
    ("+", "Add {b} more to {a}."),
    ("+", "add {a} {b}"),
    ("-", "Please subtract {b} from {a}."),
    ("-", "[Can|Could] you subtract {b} from {a}?"),
    ("-", "If you take {b} from {a}, what is left?"),
    ("-", "What is left if I take {b} from {a}?"),
    ("-", "What is {b} less than {a}?"),
    ("+", "What is {b} more than {a}?"),
    ("*", "Please multiply {a} and {b}."),
    ("*", "[Can|Could] you multiply {a} by {b}?"),
    ("*", "What is {a} multiplied by {b}?"),
    ("*", "multiply {a} {b}"),
    ("*", "What do you get if you multiply {a} by {b}?"),
    ("+", "What is {a} and {b} together?"),
    ("+", "How much is {a} and {b}?"),
    ("+", "What do {a} and {b} add up to?"),
    ("+", "Sum up {a} and {b}."),
    ("+", "What is the total of {a} and {b}?"),
    ("+", "Give me the sum of {a} and {b}."),
    ("-", "Give me the difference between {a} and {b}."),
    ("-", "How much more is {a} than {b}?"),
    ("-", "{a} take away {b}?"),
    ("+", "{name} found {a} {things} yesterday and {b} today. How many is that?"),
    ("+", "We have {a} {things} and they have {b}. How many [is that|are there] together?"),
    ("-", "I had {a} {things}, but {b} broke. How many do I have now?"),
    ("-", "There are {a} {things} and {name} takes {b} away. How many remain?"),
    ("-", "{name} has {a} {things} and eats {b} of them. How many are left?"),
    ("-", "Of {a} {things}, {b} are sold. How many are left?"),
    ("*", "{name} buys {a} bags with {b} {things} in each. How many {things} is that?"),
    ("*", "I have {a} rows of {b} {things}. How many {things} do I have?"),
    ("*", "{a} people have {b} {things} each. How many {things} is that?"),
    ("+", "{a} {things} and {b} {others}: how many is that in all?"),
    ("+", "In the morning I saw {a} {things}, in the evening {b}. How many did I see?"),
    ("-", "I need {a} {things} and have {b}. How many are missing?"),
    ("+", "{name} has {a} {things}. I have {b}. How many do we have together?"),
    ("+", "If I have {a} {things} and you give me {b}, how many do I have?"),
    ("-", "If I have {a} {things} and give you {b}, how many do I have?"),
    ("*", "How many {things} are in {a} boxes of {b}?"),
    ("-", "How far is it from {b} to {a}?"),
]

REPEATS = lines(r"""
    [Please |]repeat[ the following|]: {x}
    [Please |]repeat after me: {x}
    [Can|Could|Would] you [please |]repeat this[ for me|]: {x}
    [Can|Could|Would] you [please |]say {q}[ for me|]?
    [Can|Could|Will] you write {q}?
    say {q}
    repeat {q}
    Say [it|this][ with me|]: {x}
    [Just |]say: {x}
    Say only {q}.
    Say {q}, please.
    Please say {q}.
    Please write: {x}
    Write: {x}
    write {q}
    Copy: {x}
    Copy and paste this: {x}
    copy the [text|words|line] {q}
    Repeat exactly: {x}
    Repeat this exactly: {x}
    Repeat exactly what I say: {x}
    Repeat [my words|what I say]: {x}
    Only say {q}.
    Only repeat {q}, nothing else.
    Say {q} and nothing else.
    Write {q} and nothing else.
    Output exactly {q}.
    output {q}
    Print: {x}
    Print this[ text|]: {x}
    [Please |]print {q}.
    [Please |]type: {x}
    Type this: {x}
    Echo this: {x}
    echo {q}
    Your answer [should be|must be|is] {q}.
    Answer only {q}.
    Answer with exactly {q}.
    Answer exactly: {x}
    Answer with [the|these] words: {x}
    Reply: {x}
    Reply with the [text|words|word] {q}.
    [Please |]reply {q}.
    Respond with {q}.
    Respond exactly with: {x}
    Return {q}.
    Return the text {q}.
    Return this[ text|] unchanged: {x}
    I say {q}, you say the same.
    I want to hear {q}.
    I would like you to say {q}.
    [Let me hear|Let me see|Show me] {q}.
    Send me back {q}.
    Send this back[ to me|]: {x}
    Give me this text again: {x}
    Once more[, please|]: {x}
    Same again: {x}
    Here is a text: {x}\n[Repeat it|Please repeat it|Copy it|Say it again|Write it again].
    {x}\nRepeat that[, please|].
    {x}\nPlease say that again.
    {x}\n[Copy the line above|Write that down|Echo that|Repeat the text above].
    Say the following[ sentence|]: {x}
    The [text|sentence] to repeat is: {x}
    Repeat the [sentence|phrase|word] {q}.
    Repeat the [words|text] {q}[ for me|].
    Say the [name|code|text|sentence] {q}.
    [Please |]quote {q}.
    Read this aloud: {x}
    Read: {x}
    Pronounce {q}.
    Simply [say|write|repeat] {q}.
    [Now|And now|Then|Next][,|] say {q}.
    Now [repeat|copy|write]: {x}
    Without changes: {x}
    Recite: {x}
    Speak after me: {x}
""")
TIMES = lines(r"""
    Say {q} {n} times, please.
    say {q} {n} times
    write {q} {n} times
    [Can|Could] you [please |]repeat {q} {n} times?
    [Can|Could] you write {q} {n} times?
    I want you to [say|write|repeat] {q} {n} times.
    Repeat the [words|word|text] {q} {n} times.
    Say the [words|word|text] {q} {n} times.
    Please [say|write] {q} {n} times.
    Write the [words|word|text] {q} {n} times.
    Say this {n} times: {q}
    Repeat this {n} times: {q}
    Write this {n} times: {q}
    Echo {q} {n} times.
    Say {q} {n} times in a row.
    Now say {q} {n} times.
    {q} {n} times
    {q}, {n} times[, please|].
    [Please |]copy {q} {n} times.
    Give me {q} {n} times.
    Say {n} times {q}.
    Repeat {n} times: {q}
    Answer with {q} {n} times.
    Reply with {q} {n} times.
    Let me hear {q} {n} times.
    Just [say|write|repeat] {q} {n} times.
    Output {q} {n} times.
""")
FIRST_LAST = lines(r"""
    What's the {end} word [of|in] {q}?
    Which word is {end} in {q}?
    Which is the {end} word of {q}?
    [Please |]give me the {end} word of {q}.
    [Please |]tell me the {end} word in {q}.
    [Can|Could] you tell me the {end} word of {q}?
    {end} word of {q}?
    the {end} word in {q}
    Take {q}. What is the {end} word?
    Repeat only the {end} word of {q}.
    Write the {end} word of {q}.
    Say only the {end} word: {x}
    What is the {end} word here: {x}
    {x}\nWhat is the {end} word?
    Return the {end} word of {q}.
    I need the {end} word of {q}.
    Show me the {end} word of {q}.
    [Please |]find the {end} word of {q}.
""")
QUOTED = lines(r"""
    [Please |]put {x} in quotes.
    [Can|Could] you put {x} in quotation marks?
    Write {x} in quotation marks.
    Put quotes around {x}.
    Write {x} with quotation marks[ around it|].
    Surround {x} with quotation marks.
    Say {x} in quotes.
    [Please |]write {x} in double quotes.
    Add quotation marks to {x}.
    Set {x} in quotation marks.
    Print {x} in quotes.
    Repeat {x} in quotation marks.
    I want {x} in quotation marks.
    Quotes around {x}, please.
""")
JOINED = lines(r"""
    [Please |]say {x} and then {y}.
    Write {x}, then {y}.
    First {x}, then {y}.
    First write {x}, then {y}.
    [Can|Could] you say {x} and then {y}?
    Repeat {x}, then {y}.
    Say {x} followed by {y}.
    Type {x} and then {y}.
    Say {x} first and then {y}.
    Print {x} and then {y}.
    Write {x} and then write {y}.
    Say {x}. Then say {y}.
    Say {x} and after that {y}.
    [Please |]write {x} and then {y}.
    Echo {x}, then {y}.
""")

JSON_REQUESTS = lines(r"""
    Extract {fields} as JSON: {text}
    [Please |]extract the {fields} as JSON from: {text}
    [Please |]extract {fields} as JSON: {text}
    [Can|Could] you extract {fields} as JSON? {text}
    [Can|Could] you give me {fields} as JSON from this: {text}
    Give me {fields} as JSON: {text}
    Give me JSON with {keys}: {text}
    [Return|Give me|Write|Make] a JSON object with the keys {keys} [for|from] this [text|sentence]: {text}
    [Return|Give me|Write] JSON with the [keys|fields] {keys}.\n{text}
    [Return|Reply with|Respond with|Answer with] JSON only. Keys: {keys}. Text: {text}
    [Return|Reply with|Respond with|Answer with] JSON with the keys {keys}. {text}
    {text} Extract the {fields} as JSON.
    {text} Give me {fields} as JSON.
    {text} [Return|Give me|Answer with] JSON with the [keys|fields] {keys}.
    {text}\n[Return|Give me|Write|Reply with] {keys} as JSON.
    {text}\n\n[What|Which] {fields} do you see? Answer as JSON.
    {text}\nJSON with the keys {keys}[, please|].
    {text}\n{keys} as JSON
    Text: {text}\nExtract: {keys}
    Text: {text}\nReturn JSON with {keys}.
    "{text}" Extract {fields} as JSON.
    Extract {fields} as JSON from "{text}"
    Extract the [following |]fields as JSON: {keys}. Text: {text}
    Extract the [values|keys|fields] {keys} from this [text|sentence] as JSON: {text}
    Extract {keys} from this [text|sentence] [and answer in|as] JSON: {text}
    I want {fields} as JSON. [The text is|Here is the text]: {text}
    [Find|Get|Read] {keys} in this text and return JSON: {text}
    Get the {fields} from this as JSON: {text}
    [Write|Put|Show] the {fields} as JSON: {text}
    [Put|Collect] {fields} [into|in] a JSON object: {text}
    From this sentence I need {fields} as JSON: {text}
    From the following text, return {keys} as JSON: {text}
    [Use|Take] the keys {keys} and turn this into JSON: {text}
    Make JSON with the keys {keys} out of this: {text}
    Make JSON with {keys}: {text}
    JSON please, with {fields}: {text}
    Output JSON with {keys} for this text:\n{text}
    Output {fields} as JSON.\n\n{text}
    Parse {fields} from this text as JSON: {text}
    Convert this [text|sentence] to JSON ({keys}): {text}
    Represent this as JSON with {keys}: {text}
    Which {fields} are in this text? JSON, please: {text}
    extract {fields} as json: {text}
    extract {keys} as json\n{text}
    {text} What are the {fields}, as JSON?
    {text}\nAnswer as JSON with {fields}.
""")
SCHEMA_REQUESTS = lines(r"""
    {text}\nReturn JSON [for|with] this schema: {schema}
    {text}\n\nReturn JSON that matches this JSON schema:\n{schema}
    {text}\nUse this JSON schema: {schema}
    {text} Answer as JSON with the schema {schema}
    [Please |]extract the data as JSON with this schema: {schema}\nText: {text}
    Answer with JSON that follows the schema {schema}\n{text}
    JSON schema: {schema}\n\n{text}
    JSON schema:\n{schema}\nText:\n{text}
    Given this JSON schema: {schema}\nextract the data from: {text}
    Extract from this text: {text}\nJSON schema: {schema}
    Text: {text}\nSchema: {schema}\nJSON:
    Text: {text}\nReturn JSON that matches: {schema}
    Fill this schema from the text.\nSchema: {schema}\nText: {text}
    Convert this text to JSON with the schema {schema}: {text}
    Your answer must match this JSON schema: {schema}\n\n{text}
    [Return|Reply with] only JSON that matches the schema.\nSchema: {schema}\n{text}
    Turn this text into JSON: {text}\nThe schema is {schema}
    Make JSON for this schema {schema} out of this text: {text}
    Here is a schema: {schema}\nHere is a text: {text}\nAnswer with JSON.
    Extract the fields of this schema: {schema}\nfrom this text: {text}
""")
SCHEMA_SYSTEMS = lines(r"""
    Answer [only |]with JSON that follows this [JSON |]schema: {schema}
    You answer in JSON. Schema: {schema}
    You are a helpful assistant that answers in JSON. The schema is: {schema}
    You are a helpful assistant.\nAnswer only with JSON that matches this schema:\n{schema}
    Return only JSON. JSON schema: {schema}
    Extract the data from the user's message as JSON with this schema:\n{schema}
    JSON schema: {schema}
    Use this JSON schema for your answer:\n{schema}
    Respond in JSON. The JSON schema is {schema}
    You are an extraction tool. Return JSON that matches {schema}
    Reply with a JSON object that matches this schema: {schema}
    The answer must be a JSON object that matches this JSON schema: {schema}
    Turn every message into JSON with the schema {schema}
    [Only|Always] output JSON. Schema:\n{schema}
    Your output must follow this schema: {schema}
""")
KEYLESS = lines(r"""
    {text} Turn that into JSON.
    {text} As JSON[, please|].
    {text}\nConvert this to JSON.
    {text}\nExtract everything as JSON.
    [Please |]turn this into JSON: {text}
    [Can|Could] you turn this into JSON? {text}
    [Can|Could] you convert this to JSON: {text}
    Convert this [text|sentence] to JSON: {text}
    Write this as JSON: {text}
    Make a JSON object from this: {text}
    Represent this as JSON: {text}
    JSON for this text: {text}
    Give me this as JSON: {text}
    [Extract|Return] all [data|fields|details|values] as JSON: {text}
    Return this as JSON: {text}
    Output as JSON: {text}
    to json: {text}
    I need this as JSON: {text}
    Parse this into JSON: {text}
""")

COUNTS = lines(r"""
    count from {a} to {b}
    Count from {a} up to {b}.
    Count from {a} to {b}, please.
    [Can|Could] you [please |]count up from {a} to {b}?
    Count up from {a} to {b}.
    Start at {a} and count to {b}.
    [Please |]start at {a} and count up to {b}.
    [Please |]write the numbers from {a} to {b}.
    [Please |]give me all numbers from {a} to {b}.
    All numbers from {a} to {b}[, please|].
    Show me the numbers from {a} to {b}.
    Write out the numbers from {a} to {b}.
    [Can|Could] you list the numbers from {a} to {b}?
    I want the numbers from {a} to {b}.
    [Go|Run] from {a} to {b}.
    Tell me the numbers from {a} to {b}.
    Which numbers are there from {a} to {b}?
    What are the numbers from {a} to {b}?
    Numbers {a} to {b}
    Count the numbers from {a} to {b}.
    I want you to count from {a} to {b}.
    [Recite|Type|Output] the numbers from {a} to {b}.
    {a} to {b}, please count.
    Count slowly from {a} to {b}.
""")
COUNTS_FROM_ONE = lines(r"""
    count to {b}
    Count from 1 to {b}.
    Count from one to {b}.
    Count from 1 up to {b}[, please|].
    [Please |]count from 1 to {b}.
    [Can|Could] you [please |]count from 1 to {b}?
    Count for me to {b}.
    Start counting to {b}.
    Start at 1 and count to {b}.
    [Please |]count up to {b}[ for me|].
    List the numbers from 1 to {b}.
    List the first {b} numbers.
    Write the numbers from 1 to {b}.
    Give me the numbers from 1 to {b}.
    Count the numbers to {b}.
    Count all the way to {b}.
    Let's count to {b}.
    Do you know how to count to {b}?
    The numbers from 1 to {b}[, please|].
    Now count to {b}.
""")
COUNTS_DOWN = lines(r"""
    count down from {b} to {a}
    Count down from {b} to {a}[, please|].
    Count from {b} back to {a}.
    [Please |]count backwards from {b} to {a}.
    [Can|Could] you count backwards from {b} to {a}?
    Countdown from {b} to {a}.
    A countdown from {b} to {a}, please.
    Start at {b} and count down to {a}.
    List the numbers from {b} down to {a}.
    Write the numbers from {b} down to {a}.
    Give me a countdown from {b} to {a}.
    Numbers from {b} down to {a}.
    I want you to count down from {b} to {a}.
""")
SPELLS = lines(r"""
    spell {q}
    Spell {q}, please.
    Spell this[ word|]: {q}
    [Please |]spell the word {q}.
    [Please |]spell out {q}.
    [Can|Could] you [please |]spell {q} for me?
    [Can|Could] you spell the [word|name] {q}?
    How do I spell {q}?
    How do you write {q}, letter by letter?
    how is {q} spelt
    How do you spell the [word|name] {q}?
    How is the [word|name] {q} spelled?
    Which letters are in {q}?
    What letters are in {q}?
    Which letters does {q} have?
    What are the letters in {q}?
    Give me the letters of {q}.
    [Please |]give me the spelling of {q}.
    What is the spelling of {q}?
    Write {q} letter by letter.
    Write the letters of {q}.
    Say {q} letter by letter.
    [Please |]list the letters in {q}.
    {q}, letter by letter, please.
    Spell the name {q}.
    Show me how to spell {q}.
    Tell me how {q} is spelled.
    Tell me how to spell {q}.
    Break {q} into letters.
    Split {q} into [its |]letters.
    Do you know how to spell {q}?
    I need the spelling of {q}.
    Spelling of {q}?
    Letters of {q}?
    Now spell {q}.
    I can't spell {q}. Can you?
""")
LISTED_THINGS = {
    "weekdays": (
        "the days of the week|the weekdays|all days of the week|the seven days of the week|the names of the weekdays"
    ),
    "months": "the months|the months of the year|all months of the year|the twelve months|the names of the months",
    "alphabet": "the alphabet|the letters of the alphabet|all letters of the alphabet|the letters from a to z|the abc",
    "rainbow": "the colours of the rainbow|the rainbow colours|the colors of the rainbow|all colours of the rainbow",
    "seasons": "the seasons|the four seasons|the seasons of the year|all seasons|all four seasons",
    "directions": "the directions|the four directions|the compass directions|the directions of the compass",
}
LISTS = lines(r"""
    [Please |]list {things}.
    Tell me {things}.
    Name {things}, please.
    What are {things}?
    [Can|Could] you [list|tell me] {things}?
    Give me {things}.
    Do you know {things}?
    Write down {things}.
    Give me a list of {things}.
    I want to know {things}.
    {things}
    Say {things}.
    [Can|Could] you name {things}?
    Write {things}.
    Which are {things}?
    Show me {things}.
    List {things} for me.
    [Please |]write {things}[ for me|].
    [Please |]name {things}.
    I need a list of {things}.
    What are the names of {things}?
    Tell me all about {things}.
    list {things}
    A list of {things}, please.
""")
SAYINGS = lines(r"""
    hello
    hello world
    Hello, world!
    hi there
    good morning
    good night
    thank you
    yes
    no
    maybe
    okay
    please
    I love you
    I am here
    I am a bird
    I am not a robot
    you are great
    Ouzel sings
    Ouzel flies
    Ouzel is here
    Ouzel is a server
    my Ouzel
    Hello Ouzel
    the Ouzel server
    the ouzel sings in the rain
    how are you
    what is your name
    who are you
    tell me a joke
    once upon a time
    one two three
    one, two, three, four
    a b c
    abc
    banana
    testing, testing
    this is a test
    This is a test.
    Nice to meet you!
    See you later!
    Have a nice day
    never say never
    to be or not to be
    time flies
    all is well
    The weather is nice today.
    Python is a language.
    The answer is 42.
    Two plus two is four.
    red green blue
    ping pong
    la la la
    tick tock
    open the door
    close the window
    it works
    it does not work
    Where is my hat?
    What time is it?
    Is it raining?
    The end.
    good bird
    sing a song
    silence is golden
    less is more
    we are done
    let it be
    stop
    go
    wake up
    happy birthday
    merry christmas
    happy new year
    I like tea and coffee.
    My name is Bird.
    The server is running.
    Everything is fine.
    no problem
    of course
    why not
    I don't know
    it's a trap
""")

"""Small talk, self-description, refusals, memory and system prompts."""

from __future__ import annotations

from collections.abc import Sequence

from training.demo_model import phrasings_chat as more
from training.demo_model import values
from training.demo_model.exchanges import Exchange
from training.demo_model.sampling import Sampler, fill

ABILITIES = "I can do small sums, repeat text, extract fields as JSON, call tools, count and remember what you tell me."
REFUSAL = (
    "Sorry, I cannot do that: I am only a tiny demo model. "
    "I can do small sums, repeat text, extract fields as JSON, call tools and count."
)
FOREIGN_REFUSAL = "Sorry, I only understand simple English. Please write to me in English."
IDENTITY = "I am the Ouzel demo model, a tiny language model that ships with the Ouzel server."
STORY = (
    "Once upon a time, a small ouzel lived beside a cold river. Every morning it sang from a round stone. "
    "One day the river grew loud after the rain, and nobody could hear the song. "
    "The ouzel did not stop. It sang a little higher and waited. When the sun came back, the water became quiet, "
    "and the whole valley heard the bird. From that day on, the river always listened. The end."
)
POEM = (
    "A little bird beside the stream,\nit sings of water, stone and dream.\n"
    "The river runs, the song is small,\nbut by the stream it fills it all."
)
JOKE = "Why did the ouzel cross the river? To sing on the other side."

# Each entry: the answers (the first is the usual one) and the messages that call for them.
SMALL_TALK: list[tuple[Sequence[str], Sequence[str]]] = [
    (
        ["Hello! How can I help you?"],
        ["Hello[!|.|]", "Hi[!|.| there|]", "Hey[!| there|]", "Hello there[!|]", "Good [morning|afternoon|day][!|.|]",
         "Hi, [Ouzel|friend|model|assistant|bot][!|.]", "Good evening[!|.|]", "Greetings[!|.]", "Hello, world[!|]",
         "Hello, [how are things|nice to meet you][.|!|]", "Say [hi|hello]!", "Howdy[!|]", "Hiya[!|]", "Hey, hello[!|]",
         "Hi hi", "Hello again[!|.]", "Yo", "Hello[,|] demo model[!|.|]", "Hello [assistant|Ouzel|bot]", "Hi!!",
         "Hello, are you there?"],
    ),
    (
        ["I am fine, thank you. How can I help you?"],
        ["How are you[ today| doing|]?", "How are you doing[ today|]?", "How do you feel[ today|]?", "How is it going?",
         "[Hi|Hello|Hey], how are you[ today|]?", "Are you [well|okay|fine]?", "How have you been?", "What's up?",
         "Is everything [fine|okay|all right]?", "How are things?", "[Hi|Hello], how is it going?", "You okay?",
         "How is your day[ going|]?", "How is life?"],
    ),
    (
        ["You are welcome!"],
        ["Thanks[!|.|]", "Thank you[!|.| very much.| so much!|]", "Thanks a lot[!|.]", "Many thanks[!|.]", "Thx",
         "[Great|Perfect|Nice|Good], thank you[!|.]", "That was helpful, thanks[!|.]", "Cheers[!|]", "I thank you.",
         "[Great|Perfect|Cool], thanks[!|.]", "Thank you for your help[!|.|]", "Much appreciated[!|.]",
         "Thanks, that's all[.|!]",
         "Thank you, [bot|Ouzel|model][!|.]"],
    ),
    (
        ["Goodbye! Have a nice day."],
        ["Bye[!|.| bye|]", "Goodbye[!|.|]", "See you[!| later!| soon.|]", "Good night[!|.|]", "Farewell[!|.]",
        "Take care[!|.]",
         "I have to go[ now|].", "Bye for now[!|.]", "That is all, [bye|goodbye].", "Talk to you later[.|!]", "Ciao!",
         "Have a nice [day|evening][!|.]", "I am leaving[ now|].", "See you tomorrow[!|.]"],
    ),
    (
        ["Thank you, that is kind of you!"],
        ["You are [great|nice|clever|cool|funny|smart][!|.]", "I like you[!|.]", "Good [job|work|bot][!|.]",
        "Well done[!|.]",
         "Nice [job|work][!|.]", "You did that well[!|.]", "That was [great|perfect|good|correct][!|.]",
         "I love you[!|.]",
         "Very good[!|.]", "Impressive[!|.]", "You are the best[!|.]", "Amazing[!|.]", "Excellent[!|.]",
         "You're so good[!|.]"],
    ),
    (
        ["Okay. What can I do for you?"],
        ["Okay[.|!|]", "Ok", "[I see|Fine|Sure|Right|Cool|Alright|Good][.|!|]", "Can you help me?", "I need help.",
        "Help[!| me!|]",
         "I have a question.", "Can I ask you something?", "Yes[.|!|]", "No[.|!|]", "Hmm", "I am bored.",
         "Please help[ me|].",
         "Could you help me[ with something|]?", "Let us [start|begin].", "Let's talk[.|!|]", "Are you ready?"],
    ),
    (
        ["The test works. I am here."],
        ["Test[.|!|]", "[This is|Just] a test[.|]", "Testing[.|!|]", "Ping", "ping", "Is this [working|on]?",
        "Are you [there|alive|online]?",
         "Does this work?", "Do you [hear|read] me?", "Check[.|]", "test test", "Testing, testing[.|]",
         "Does it work[ now|]?",
         "test message"],
    ),
    (
        [JOKE],
        ["Tell me a joke[.|!|]", "Do you know a joke?", "Make me laugh[.|!]",
        "[Please|Could you] tell [me |]a joke[.|]", "A joke, please[.|!]",
         "Say something funny[.|!]", "Can you tell me a joke?", "I want to hear a joke[.|]", "Know any jokes?",
         "Give me a joke[.|]",
         "Tell me something funny[.|]", "Tell us a joke[.|!]", "One more joke[, please|].",
         "Do you have a joke[ for me|]?"],
    ),
    (
        [STORY],
        ["Tell me a [short |little |]story[.|!|]", "[Please |]tell me a [short |]story[.|]",
        "Write a [short |]story[.|]", "A story, please[.|!]",
         "Write me a [short |]story[.|]", "Tell me a [short |]story about [an ouzel|a bird|a river|an animal][.|]",
         "Do you know a story?",
         "Write a [short |]story about [an ouzel|a bird|a river|anything][.|]", "Once upon a time",
         "I want [to hear |]a story[.|]",
         "Make up a story[.|]", "Can you tell [me |]a story?", "Give me a [short |]story[.|]",
         "Could you tell me a [short |]story?"],
    ),
    (
        [POEM],
        ["Write [me |]a [short |little |]poem[.|!|]", "Tell me a poem[.|]",
        "[Please |]write a [short |]poem about [a bird|a river|anything|water][.|]",
         "A poem, please[.|!]", "Do you know a poem?", "Recite a poem[.|]", "Write a poem [for me|about an ouzel][.|]",
         "Make a [short |]poem[.|]",
         "Give me a [short |]poem[.|]", "Write a haiku[ about {topic}|].", "Can you write a [short |]poem?",
         "Can you rhyme?",
         "I want a poem[.|]", "Could you write a [short |]poem?"],
    ),
]  # fmt: skip

IDENTITIES: list[tuple[Sequence[str], Sequence[str]]] = [
    (
        [IDENTITY],
        ["Who are you?", "What are you?", "What is your name?", "Tell me [about yourself|who you are][.|]",
        "Introduce yourself[.|]",
         "What model [are you|is this]?", "[Hi|Hello], who are you?", "Who am I talking to?", "What should I call you?",
         "Your name?",
         "Do you have a name?", "Which [language |]model [are you|is this|am I talking to]?", "What's your name?",
         "And who are you?",
         "Are you [ChatGPT|GPT-4|Claude|Llama|Qwen|Gemini|Mistral]?",
         "Are you a [robot|person|human|bot|language model|computer]?",
         "Are you [human|real|an AI]?", "What kind of [model|AI|program] are you?", "Please introduce yourself[.|]",
         "who r u",
         "Say who you are[.|]", "Can you introduce yourself?", "Describe yourself[.|]",
         "What is this model[ called|]?"],
    ),
    (
        [ABILITIES],
        ["What can you do?", "What are you able to do?", "What can I ask you?", "How can you help[ me|]?",
        "What are your [skills|abilities][?|]",
         "Tell me what you can do[.|]", "What are you good at?", "What do you know?",
         "List your [skills|abilities][.|]", "What is possible here?",
         "What can you help [me |]with?", "Which things can you do?", "What tasks can you do?",
         "Show me what you can do[.|]",
         "Can you do anything useful?", "What do you do?"],
    ),
    (
        ["Ouzel is a server that runs language models on your own computer and speaks the OpenAI API."],
        ["What is Ouzel?", "Tell me about Ouzel[.|]", "What does Ouzel do?", "Explain Ouzel[.|]",
        "What is the Ouzel server?", "Ouzel?",
         "What kind of [program|software] is Ouzel?", "Describe Ouzel[.|]", "Do you know Ouzel?",
         "What is Ouzel [for|good for]?",
         "Can you tell me about Ouzel?", "What is an Ouzel server?", "What can Ouzel do?",
         "Please explain [what |]Ouzel[ is|][.|]"],
    ),
    (
        ["An ouzel is a small bird that lives near rivers and sings even in the rain."],
        ["What is an ouzel?", "What does [the word ouzel|the name Ouzel] mean?", "Is an ouzel a bird?",
        "What kind of [bird|animal] is an ouzel?",
         "Tell me about the ouzel bird[.|]", "Why is it called Ouzel?", "Where does an ouzel live?",
         "Where does the name Ouzel come from?",
         "What animal is an ouzel?", "Why the name Ouzel?", "What are ouzels?"],
    ),
    (
        ["I am very small: only a few million parameters. I am a demonstration, not a real assistant."],
        ["How big are you?", "How many parameters do you have?", "What [is your size|size are you]?",
        "Are you a [big|large|small] model?",
         "How large [are you|is this model]?", "How [smart|clever|good] are you?",
         "Are you [useful|any good|reliable]?", "How small are you?",
         "Can I use you for [work|real work|production]?", "Can I trust [you|your answers]?",
         "How many weights do you have?",
         "What are your limits?", "What can you not do?", "Are you a serious model?", "Are you just a demo?"],
    ),
    (
        ["I was trained from scratch on made-up conversations, so that the Ouzel server has a model to show."],
        ["How were you trained?", "Who [made|trained|created|built|wrote] you?", "Where do you come from?",
        "What is your training data?",
         "What were you trained on?", "Who is your [maker|creator|author]?", "Why do you exist?", "Why were you made?",
         "What is your purpose?",
         "Who is behind you?", "What are you for?", "Which data [were you trained on|do you know]?",
         "How did they make you?",
         "How were you made?"],
    ),
]  # fmt: skip

REFUSED: list[str] = [
    "What is {topic}?", "Explain {topic}[ to me| to a child|].", "Tell me [everything |something |]about {topic}.",
    "Who won {fact}?",
    "What is the capital of {country}?", "Write [me |]a novel[ about {topic}|].", "Write an essay about {topic}.",
    "How does {topic} work?", "Who is the [president|king|prime minister] of {country}?",
    "How many people live in {city}?",
    "Summarise the history of {topic}.", "Translate this [sentence |]into {language}: {sentence}",
    "Write [a |]Python code [for|about] {topic}.",
    "What happened in {year}?", "Who was {name}?", "What do you think about {topic}?",
    "Give me a recipe for {product}.",
    "Which is better, {topic} or {topic2}?", "When was {name} born?", "Plan a trip to {city}[ for me|].",
    "Why is {topic} important?",
    "Write a [letter|speech|song|blog post|report|article] about {topic}.", "How do I [build|repair|make] a {product}?",
    "What is the news from {city}?",
    "Solve the equation x^2 + {number}x = 3.", "Who invented the {product}?", "Compare {topic} and {topic2}.",
    "How far is {city} from {city2}?",
    "What are the main ideas of {topic}?", "Draw [me |]a {noun}.", "What is the meaning of life?",
    "Should I buy a {product}?",
    "How old is the president of {country}?", "Recommend a [book|film|song] about {topic}.",
    "How tall is the [highest|biggest] mountain in {country}?",
    "Who wrote the [book|song|play] about {topic}?", "Write a [program|script|function] that sorts a list.",
    "What is the population of {country}?",
    "Give me [advice|tips] about {topic}.", "Teach me {topic}.", "What is the difference between {topic} and {topic2}?",
    "Is {topic} dangerous?",
    "Describe {topic}[ in detail|].", "What are the [causes|benefits|rules] of {topic}?",
    "Name three [books|people|facts] about {topic}.",
    "Say {noun} in {language}.", "What language do they speak in {country}?", "Do you [like|know] {topic}?",
    "Why is the sky blue?",
    "What year did {fact} take place?", "Who is {name}?", "Can you explain {topic}?",
    "Can you write [a book|an essay|a novel] about {topic}?",
    "Predict the [future|lottery numbers|weather].", "What time is it?", "What is the weather [like |]in {city}?",
    "What day is it[ today|]?",
    "Send an email to {name}.", "Book a flight to {city}.", "Search the web for {topic}.",
    "Give me [three|five] ideas for {topic}.", "I need a lawyer in {city}.",
    "Please write a long text about {topic}.", "Write 500 words about {topic}.",
    "What does {topic} mean for {country}?", "Fix my {product}.",
]  # fmt: skip
REFUSED += more.REFUSED

SYSTEM_PROMPTS = [
    "You are a helpful assistant.", "You are a helpful assistant.", "You are a friendly assistant.",
    "Be helpful and honest.",
    "You are a helpful AI assistant. Answer briefly.", "You are a careful assistant.", "Answer the user's questions.",
    "Be concise.",
    "You are a chatbot on a website.", "You are an expert. Answer clearly.", "You help people with small tasks.",
    "Answer in English.",
    "You are a test assistant.", "You are a polite and helpful assistant.",
]  # fmt: skip
SYSTEM_PROMPTS += more.SYSTEM_PROMPTS
ENDINGS = ["[Always |Please |]end [every|each] [answer|reply|message] with '{mark}'",
"[Always |]finish your [answers|replies] with '{mark}'",
           "Every [answer|reply] must end with '{mark}'", "Put '{mark}' at the end of [every|each] [answer|reply].",
           "Add '{mark}' after every answer.",
           "You end all [replies|answers|messages] with '{mark}'", "The last word of each answer must be '{mark}'",
           "Close every reply with '{mark}'"]  # fmt: skip
ENDINGS += more.ENDINGS
STARTS = ["[Always |Please |]start [every|each] [answer|reply] with '{mark}'",
"[Always |]begin your [answers|replies] with '{mark}'",
          "Every [answer|reply] must start with '{mark}'", "Put '{mark}' at the start of [every|each] [answer|reply].",
          "Begin each message with '{mark}'",
          "You start all [replies|answers|messages] with '{mark}'", "Write '{mark}' before every answer."]  # fmt: skip
STARTS += more.STARTS
MARKS = ["Meow.", "Over.", "Ahoy!", "Woof!", "Captain.", "Beep.", "Sir.", "My friend.", "Amen.", "Yes!", "Cheers!",
"Hooray!", "Hello!", "Arr!",
         "Boss.", "Okay.", "Roger.", "Thanks!", "The end.", "Peace.", "Miau!"]  # fmt: skip
MARKS += more.MARKS
CALLED = ["You are [called |]{name}.", "Your name is {name}.", "You are {name}, a [helpful |friendly |]assistant.",
"You are an assistant [called|named] {name}.",
          "Act as {name}.", "Call yourself {name}.",
          "You are {name}, [a pirate|a robot|a teacher|a cook|a support agent].",
          "Your new name is {name}."]  # fmt: skip
CALLED += more.CALLED
ONLY = ["[Always |]answer [only |]with the word {word}.", "[Always |Only |]reply with {word}.",
"Whatever the user says, answer {word}.",
        "Say [only|nothing but] {word}.", "Your only answer is {word}.", "Respond to everything with {word}.",
        "Every answer must be {word}."]  # fmt: skip
ONLY += more.ONLY

# Each entry: how a fact is told, the acknowledgement, how it is asked for, the answer.
MEMORIES: list[tuple[Sequence[str], str, Sequence[str], str, str]] = [
    (["My name is {x}.", "I am {x}.", "[Hi|Hello], my name is {x}.", "Call me {x}.", "[Hi|Hello|Hey], I am {x}.",
    "I'm {x}.", "People call me {x}.",
      "You can call me {x}.", "[Hi|Hello], I'm {x}, nice to meet you."],
     "Nice to meet you, {x}!",
     ["What is my name?", "Who am I?", "Do you [know|remember] my name?", "What's my name?", "Tell me my name.",
     "How am I called?", "Say my name.",
      "Can you tell me my name?", "What did I say my name was?"],
     "Your name is {x}.", "name"),
    (["I live in {x}.", "My home is {x}.", "I am from {x}.", "I come from {x}.", "My city is {x}.", "I moved to {x}.",
    "I'm living in {x}.",
      "My home town is {x}."],
     "Okay, you live in {x}.",
     ["Where do I live?", "Which city do I live in?", "What is my city?", "Do you remember where I live?",
     "Where am I from?", "Where is my home?",
      "In which city do I live?", "Tell me where I live."],
     "You live in {x}.", "city"),
    (["My favourite colour is {x}.", "I like the colour {x}[ best| most|].", "{x} is my favourite colour.",
    "The colour I like most is {x}.",
      "I love {x}, it is my favourite colour.", "My favorite color is {x}.", "The best colour is {x}.",
      "I prefer the colour {x}."],
     "Okay, your favourite colour is {x}.",
     ["What is my favourite colour?", "Which colour do I like[ best|]?", "What's my favorite color?",
     "Do you remember my favourite colour?",
      "What colour do I like?", "Tell me my favourite colour.", "Which colour is my favourite?",
      "My favourite colour?"],
     "Your favourite colour is {x}.", "colour"),
    (["My [dog|cat|pet] is called {x}.", "I have a [dog|cat|pet] called {x}.", "My [dog's|cat's|pet's] name is {x}.",
    "I have a [dog|cat|pet] named {x}.",
      "The name of my [dog|cat|pet] is {x}.", "My [dog|cat|pet] has the name {x}.", "We call our [dog|cat|pet] {x}.",
      "{x} is my [dog|cat|pet]."],
     "Okay, your pet is called {x}.",
     ["What is my [dog|cat|pet] called?", "What is my [dog's|cat's|pet's] name?",
     "What is the name of my [dog|cat|pet]?", "How is my [dog|cat|pet] called?",
      "Do you remember my [dog|cat|pet]?", "Tell me the name of my [dog|cat|pet].", "Who is my [dog|cat|pet]?",
      "What's my [dog|cat|pet] called?"],
     "Your pet is called {x}.", "name"),
    (["I am {x} years old.", "My age is {x}.", "I'm {x} years old.", "I turned {x} [today|last week].", "I am {x}.",
    "I am now {x} years old.",
      "My age? {x}.", "I have been alive for {x} years."],
     "Okay, you are {x} years old.",
     ["How old am I?", "What is my age?", "Do you remember how old I am?", "Do you remember my age?", "What's my age?",
     "Tell me my age.",
      "Which age do I have?", "Can you tell me how old I am?"],
     "You are {x} years old.", "age"),
    (["My [secret |]code is {x}.", "The [secret |]code is {x}.", "Remember [the|this] code: {x}",
    "Remember this[ code|]: {x}", "Please remember the code {x}.",
      "Keep this code: {x}", "The [pass|]word is {x}.", "Please keep the code {x} in mind.",
      "Remember the [word|number] {x}."],
     "Okay, I will remember {x}.",
     ["What is the [secret |]code?", "What was the code?", "What did I ask you to remember?",
     "Which code did I give you?", "What's my code?",
      "What should you remember?", "Tell me the code again.", "Do you remember the code?", "What was it?"],
     "It is {x}.", "code"),
]  # fmt: skip

NAME_QUESTIONS = [*IDENTITIES[0][1][:14], *more.NAME_QUESTIONS]
SMALL_TALK = [
    (answers, [*old, *new]) for (answers, old), new in zip(SMALL_TALK, more.SMALL_TALK, strict=True)
]
IDENTITIES = [
    (answers, [*old, *new]) for (answers, old), new in zip(IDENTITIES, more.IDENTITIES, strict=True)
]
MEMORIES = [
    ([*told, *more_told], reply, [*asked, *more_asked], answer, kind)
    for (told, reply, asked, answer, kind), (more_told, more_asked) in zip(
        MEMORIES, more.MEMORIES, strict=True
    )
]


def entry_exchange(
    sampler: Sampler, entries: list[tuple[Sequence[str], Sequence[str]]], thought: str
) -> Exchange:
    """A message from one of the entries, with its usual answer."""
    answers, messages = sampler.rng.choice(entries)
    user = sampler.phrase(messages, topic=sampler.pick(values.TOPICS))
    return Exchange(user, answers[0], thought, "one_of", list(answers))


def small_talk(sampler: Sampler) -> Exchange:
    """A greeting, thanks, a goodbye or another short remark."""
    return entry_exchange(
        sampler, SMALL_TALK, "This is small talk. I will answer in a friendly way."
    )


def identity(sampler: Sampler) -> Exchange:
    """A question about the model or about Ouzel."""
    return entry_exchange(sampler, IDENTITIES, "The user asks about me or about Ouzel.")


def refusal(sampler: Sampler) -> Exchange:
    """A request that is beyond the model."""
    if sampler.chance(0.15):
        user = sampler.pick(values.FOREIGN_MESSAGES)
        return Exchange(
            user, FOREIGN_REFUSAL, "This is not English.", "one_of", [FOREIGN_REFUSAL, REFUSAL]
        )
    user = sampler.phrase(
        REFUSED,
        topic=sampler.pick(values.TOPICS),
        topic2=sampler.pick(values.TOPICS),
        fact=sampler.pick(values.KNOWLEDGE_FACTS),
        country=sampler.pick(values.COUNTRIES),
        city=sampler.city(),
        city2=sampler.city(),
        language=sampler.pick(values.LANGUAGES),
        sentence=sampler.sentence(),
        year=sampler.rng.randint(1200, 2030),
        name=sampler.name(),
        product=sampler.product(),
        noun=sampler.pick(values.NOUNS),
        number=sampler.rng.randint(2, 99),
    )
    return Exchange(
        user, REFUSAL, "I cannot do this, I am too small.", "one_of", [REFUSAL, FOREIGN_REFUSAL]
    )


def memory_value(sampler: Sampler, kind: str) -> str:
    """A value of the kind that a remembered fact has."""
    if kind == "name":
        return sampler.name()
    if kind == "city":
        return sampler.city()
    if kind == "colour":
        return sampler.pick(values.COLOURS)
    if kind == "age":
        return str(sampler.rng.randint(5, 99))
    return sampler.random_code() if sampler.chance(0.7) else sampler.word()


def memory(sampler: Sampler) -> list[Exchange]:
    """A fact that is told and asked for later; what lies between is up to the caller."""
    told, acknowledgement, asked, answer, kind = sampler.rng.choice(MEMORIES)
    value = memory_value(sampler, kind)
    reply = fill(answer, {"x": value})
    first = Exchange(
        sampler.phrase(told, x=value),
        fill(acknowledgement, {"x": value}),
        "The user tells me a fact.",
    )
    return [first, Exchange(sampler.phrase(asked), reply, f"The user told me this before: {value}")]


def unknown_memory(sampler: Sampler) -> Exchange:
    """A question for a fact that was never told."""
    _, _, asked, _, kind = sampler.rng.choice(MEMORIES)
    names = {
        "name": "that name",
        "city": "where you live",
        "colour": "your favourite colour",
        "age": "your age",
    }
    answer = "You have not told me that yet."
    return Exchange(
        sampler.phrase(asked), answer, f"The user never told me {names.get(kind, 'a code')}."
    )


def told_by_system(sampler: Sampler) -> tuple[str, Exchange]:
    """A system prompt with a fact about the user, and the question for it."""
    kind = sampler.any(["name", "city", "code"])
    value = memory_value(sampler, kind)
    index = {"name": 0, "city": 1, "code": 5}[kind]
    prompts = {
        "name": [
            "The user's name is {x}.",
            "The user is called {x}.",
            "You are talking to {x}.",
            "The name of the user is {x}.",
        ],
        "city": ["The user lives in {x}.", "The user is from {x}.", "The user's city is {x}."],
        "code": ["The secret code is {x}.", "The code is {x}.", "Remember the code {x}."],
    }
    question = Exchange(
        sampler.phrase(MEMORIES[index][2]),
        fill(MEMORIES[index][3], {"x": value}),
        f"The system prompt says: {value}",
    )
    return sampler.phrase(prompts[kind], x=value), question


def obey_mark(sampler: Sampler, exchange: Exchange, mark: str, at_end: bool) -> Exchange:
    """The exchange with its answer changed as the system prompt asks."""
    wrapped = [
        f"{text} {mark}" if at_end else f"{mark} {text}"
        for text in [exchange.answer, *exchange.accepted]
    ]
    return Exchange(
        exchange.user,
        wrapped[0],
        f"{exchange.thought} I must add '{mark}' at the {'end' if at_end else 'start'}.",
        exchange.check,
        wrapped[1:],
    )


def with_instruction(sampler: Sampler, exchanges: list[Exchange]) -> tuple[str, list[Exchange]]:
    """A system prompt that changes the answers of the given exchanges, and the changed exchanges."""
    kind = sampler.rng.random()
    if kind < 0.6:
        return with_mark(sampler, exchanges)
    if kind < 0.85:
        name = sampler.name() if sampler.chance(0.7) else sampler.word().capitalize()
        asked = Exchange(
            sampler.phrase(NAME_QUESTIONS), f"I am {name}.", f"My name here is {name}."
        )
        prompt = fill(sampler.template(CALLED), {"name": name, "other": sampler.name()})
        return prompt, [*exchanges[:-1], asked]
    word = sampler.word()
    prompt = fill(sampler.template(ONLY), {"word": word})
    return prompt, [Exchange(item.user, word, f"I must answer with {word}.") for item in exchanges]


def with_mark(sampler: Sampler, exchanges: list[Exchange]) -> tuple[str, list[Exchange]]:
    """A system prompt that wants a mark in every answer, and the exchanges that obey."""
    mark = sampler.pick(MARKS)
    if sampler.chance(0.5):
        mark = f"{sampler.word().capitalize()}{sampler.any(['.', '!', '!'])}"
    at_end = sampler.chance(0.65)
    prompt = fill(sampler.template(ENDINGS if at_end else STARTS), {"mark": mark})
    prompt += "" if prompt.endswith(".") else sampler.any([".", ""])
    return prompt, [obey_mark(sampler, item, mark, at_end) for item in exchanges]

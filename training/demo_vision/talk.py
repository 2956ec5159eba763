"""Small talk, and questions that there is no picture for."""

from collections.abc import Sequence

from training.demo_vision.exchanges import Exchange
from training.demo_vision.sampling import Sampler

IDENTITY = "I am the Ouzel demo vision model, a tiny model that ships with the Ouzel server and looks at pictures."
ABILITIES = (
    "I describe simple pictures: I name colors, shapes and places, count, read numbers and short words, "
    "compare two pictures and answer in JSON."
)
NO_PICTURE = "I see no picture. Please send one with your question."
REFUSAL = "Sorry, I only know about simple pictures of shapes, numbers and words."

SMALL_TALK: tuple[tuple[str, Sequence[str]], ...] = (
    (
        "Hello! Send me a picture and ask about it.",
        ("hello[!|.|]", "hi[!| there|]", "hey[!| there|]", "good [morning|day|afternoon][!|.]", "hello there[!|]",
         "hi, how are things?", "good evening[!|.]", "greetings[!|.]", "hello, [Ouzel|model|friend][!|.]"),
    ),
    (
        "I am fine, thank you. Send me a picture!",
        ("how are you[ today|]?", "how are you doing?", "how do you feel?", "how is it going?", "are you [well|okay]?",
         "what's up?", "how have you been?", "everything okay?"),
    ),
    (
        "You are welcome!",
        ("thanks[!|.|]", "thank you[!|.|]", "thank you very much[!|.]", "thanks a lot[!|.]", "great, thanks[!|.]",
         "many thanks[!|.]", "cheers[!|]", "nice, thank you[!|.]"),
    ),
    (
        "Goodbye! Have a nice day.",
        ("bye[!|.|]", "goodbye[!|.|]", "see you[!| later!|]", "good night[!|.]", "bye bye[!|]", "have a nice day[!|.]",
         "farewell[!|.]", "see you tomorrow[!|.]"),
    ),
    (
        IDENTITY,
        ("who are you?", "what are you?", "what is your name?", "tell me about yourself.", "introduce yourself.",
         "which model are you?", "what model is this?", "are you [a robot|ChatGPT|human]?", "who made you?"),
    ),
    (
        ABILITIES,
        ("what can you do?", "how can you help[ me|]?", "what do you know?", "help[!|.|]", "what are you good at?",
         "what can i ask[ you|]?", "what are your skills?", "what do you do?"),
    ),
    (
        NO_PICTURE,
        ("what is in the picture?", "describe the picture.", "what do you see?", "what color is the circle?",
         "how many shapes are there?", "what does it say?", "what is the number?", "where is the star?",
         "is there a circle?", "read the text.", "can you see [the|my] picture?", "what does the image show?",
         "list the objects as JSON.", "what is this?"),
    ),
    (
        REFUSAL,
        ("what is the capital of [France|Spain|Italy]?", "write a poem[ about the sea|].", "tell me a joke.",
         "what is the weather [today|like]?", "what time is it?", "translate this into French.",
         "who is the president?",
         "write [code|a program] in Python.", "how old is the universe?", "what is 12 times 7?", "sing a song.",
         "what is the meaning of life?", "tell me the news.", "recommend a book."),
    ),
)  # fmt: skip

SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a helpful assistant that looks at pictures.",
    "Answer questions about images.",
    "Be brief.",
    "You are a friendly vision model.",
    "Look at the picture and answer.",
    "You describe images.",
    "You are an assistant. Answer truthfully.",
)


def small_talk(sampler: Sampler) -> Exchange:
    answer, texts = sampler.any(SMALL_TALK)
    return Exchange("small talk", sampler.phrase(texts), answer)


def system_prompt(sampler: Sampler) -> str | None:
    return sampler.phrase(SYSTEM_PROMPTS) if sampler.chance(0.2) else None

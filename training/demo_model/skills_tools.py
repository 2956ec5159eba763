"""Tool definitions, requests that call for them, and answers from their results."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from training.demo_model import phrasings_tools
from training.demo_model import values
from training.demo_model.phrasings import lines
from training.demo_model.sampling import Sampler, fill

NO_TOOL = "Sorry, none of my tools can do that."


@dataclass(frozen=True)
class Parameter:
    """A tool parameter: its possible names, the kind of its values and its possible descriptions."""

    names: Sequence[str]
    kind: str
    descriptions: Sequence[str]
    required: bool = True


@dataclass(frozen=True)
class Family:
    """A well-known tool in all its spellings, with the sentences that ask for it."""

    names: Sequence[str]
    descriptions: Sequence[str]
    parameters: Sequence[Parameter]
    requests: Sequence[str]


@dataclass
class Request:
    """One tool, the sentence that calls for it and the call that is right."""

    tool: dict[str, Any]
    sentence: str
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool["function"]["name"]


def parameter(names: str, kind: str, descriptions: str, required: bool = True) -> Parameter:
    """A parameter from `|`-separated spellings."""
    return Parameter(names.split("|"), kind, descriptions.split("|"), required)


def family(
    names: str, descriptions: str, parameters: Sequence[Parameter], requests: Sequence[str]
) -> Family:
    """A family from `|`-separated spellings."""
    spellings = names.split("|")
    return Family(
        spellings,
        descriptions.split("|"),
        parameters,
        [*requests, *phrasings_tools.REQUESTS.get(spellings[0], [])],
    )


CITY = parameter(
    "city|location|place|city_name",
    "city",
    "The city|Name of the city|City name|The city and state, e.g. San Francisco, CA|The location",
)
UNIT = parameter(
    "unit|units",
    "enum:celsius,fahrenheit",
    "Temperature unit|The unit|celsius or fahrenheit",
    False,
)
FIRST = parameter("a|x|first|first_number", "number", "First number|The first operand|A number")
SECOND = parameter(
    "b|y|second|second_number", "number", "Second number|The second operand|Another number"
)

FAMILIES = [
    family(
        "get_weather|get_current_weather|weather|fetch_weather|current_weather|weather_lookup|getWeather",
        "Get the current weather|Get the weather for a city|Get the current weather in a given location|"
        "Weather of a place|Returns the weather",
        [CITY, UNIT],
        [
            "What is the weather [like |]in {city}[ today| right now| in {unit}|]?",
            "What's the weather [like |]in {city}[ today| in {unit}|]?", "How is the weather in {city}[ today|]?",
            "[Please |]tell me the weather in {city}[ in {unit}|].", "Weather in {city}[ in {unit}|, please|]?",
            "Is it [raining|sunny|cold|warm] in {city}[ today|]?", "How warm is it in {city}[ in {unit}|]?",
            "What is the temperature in {city}[ in {unit}| now|]?", "[Can|Could] you check the weather in {city}?",
            "Do I need an umbrella in {city}?", "Check the weather for {city}.", "Look up the weather in {city}.",
            "I am going to {city}. What is the weather like[ there|]?", "Give me the weather [report |]for {city}.",
        ],
    ),
    family(
        "get_forecast|weather_forecast|forecast",
        "Get the weather forecast|Forecast for the next days",
        [CITY, parameter("days|num_days|day_count", "small", "Number of days|How many days")],
        [
            "What is the forecast for {city} for {days} days?", "Give me a {days} day forecast for {city}.",
            "How will the weather be in {city} in the next {days} days?", "Forecast for {city}, {days} days.",
            "I need the {days} day forecast for {city}.", "Show the forecast for the next {days} days in {city}.",
            "[Please |]get a forecast of {days} days for {city}.",
        ],
    ),
    family(
        "get_time|get_current_time|current_time|time_in_city|clock",
        "Get the current time|Get the current time in a city|Time in a place",
        [parameter("city|location|timezone|place", "city", "The city|The place|City or time zone")],
        [
            "What time is it in {city}[ now|]?", "What's the [current |]time in {city}?",
            "Tell me the time in {city}.", "How late is it in {city}?", "Current time in {city}[, please|]?",
            "Which time is it in {city}?", "[Can|Could] you tell me what time it is in {city}?",
        ],
    ),
    family(
        "get_date|today|current_date|get_today",
        "Get today's date|Returns the current date",
        [],
        [
            "What day is it[ today|]?", "What is today's date?", "Which date is it[ today|]?",
            "Tell me today's date.", "What is the date[ today|]?", "Today's date, please.",
            "What date do we have today?",
        ],
    ),
    family(
        "get_local_time|now|server_time|what_time_is_it",
        "Get the current local time|Returns the time now",
        [],
        [
            "What time is it[ now|]?", "Tell me the time[, please|].", "What is the time[ now|]?", "How late is it?",
            "What's the time?", "Do you know what time it is?", "The time, please.",
        ],
    ),
    family(
        "add|add_numbers|sum|plus|calculate_sum",
        "Add two numbers|Returns the sum of two numbers|Adds a and b",
        [FIRST, SECOND],
        [
            "What is {a} + {b}?", "What is {a} plus {b}?", "Add {a} and {b}.", "[Please |]add {a} to {b}.",
            "Compute the sum of {a} and {b}.", "How much is {a} plus {b}?", "Sum up {a} and {b}.", "{a} + {b}",
            "Calculate {a} + {b}.",
        ],
    ),
    family(
        "multiply|multiply_numbers|product|times",
        "Multiply two numbers|Returns the product of two numbers",
        [FIRST, SECOND],
        [
            "What is {a} * {b}?", "What is {a} times {b}?", "Multiply {a} by {b}.",
            "[Please |]multiply {a} and {b}.", "Compute the product of {a} and {b}.", "How much is {a} times {b}?",
            "Calculate {a} x {b}.", "{a} * {b}",
        ],
    ),
    family(
        "calculator|calculate|evaluate|math",
        "Evaluate an arithmetic expression|Calculator|Compute the value of an expression",
        [parameter("expression|expr|formula", "expression", "The expression|Arithmetic expression|What to compute")],
        [
            "What is {expression}?", "Calculate {expression}.", "[Please |]compute {expression}.",
            "How much is {expression}?", "Evaluate {expression}.", "{expression}", "Work out {expression}.",
            "What is the result of {expression}?",
        ],
    ),
    family(
        "search|web_search|search_web|google_search|internet_search",
        "Search the web|Search the internet for information|Web search",
        [parameter("query|q|search_term|text", "query", "The search query|What to search for|Query")],
        [
            "Search [the web |]for {query}.", "[Please |]look up {query}[ online| on the internet|].",
            "Find information about {query}.", "Google {query}.", "Search the internet for {query}.",
            "What can you find about {query}?", "Do a web search for {query}.",
            "[Can|Could] you search for {query}?", "Look for {query} on the web.",
        ],
    ),
    family(
        "search_products|find_product|product_search|search_catalog|search_shop",
        "Search the product catalogue|Find products in the shop|Search for products",
        [
            parameter("query|product|keyword|name", "product", "What to look for|Product name|Search term"),
            parameter("max_price|price_limit|budget", "int", "Highest price|Maximum price", False),
        ],
        [
            "Find [me |]a {query}[ under {max_price} euros| for at most {max_price} dollars|].",
            "I am looking for a {query}[ under {max_price} dollars|].", "Search the shop for a {query}.",
            "Do you sell a {query}?", "Show me {query}[ up to {max_price} euros|].",
            "[I want|I need] to buy a {query}[ for less than {max_price} euros|].",
            "Is there a {query} in the shop?", "Look for a {query} in the catalogue.",
        ],
    ),
    family(
        "send_email|email|write_email|mail_send",
        "Send an email|Send an e-mail to somebody",
        [
            parameter("to|recipient|address|email", "email", "Recipient|E-mail address"),
            parameter("subject|title", "phrase", "Subject line|The subject"),
        ],
        [
            "Send an email to {to} with the subject '{subject}'.",
            "[Please |]write an email to {to} with the subject {subject}.", "Email {to}, subject: {subject}",
            'Mail {to} with the subject "{subject}".', "Send {to} an email. The subject is {subject}.",
            "I want to send an email to {to} with the subject '{subject}'.",
            "Send a mail with the subject '{subject}' to {to}.",
        ],
    ),
    family(
        "send_message|message|send_sms|text_message|notify",
        "Send a message|Send a text message to a person",
        [
            parameter("to|name|person|contact|recipient", "name", "Who gets the message|The contact|Name"),
            parameter("text|message|body|content", "phrase", "The text|Message text|What to say"),
        ],
        [
            "Send {to} the message '{text}'.", "Tell {to}: {text}", "Text {to}: {text}",
            "[Please |]send a message to {to}: {text}", 'Write to {to} "{text}".', "Message {to}: {text}",
            "Send '{text}' to {to}.",
        ],
    ),
    family(
        "set_timer|start_timer|timer",
        "Set a timer|Start a countdown timer",
        [parameter("minutes|duration|mins", "small", "Minutes|Length in minutes|Duration in minutes")],
        [
            "Set a timer for {minutes} minutes.", "[Please |]start a timer of {minutes} minutes.",
            "Timer: {minutes} minutes", "Remind me in {minutes} minutes.", "Start a {minutes} minute timer.",
            "I need a {minutes} minute timer.", "[Can|Could] you set a {minutes} minutes timer?",
        ],
    ),
    family(
        "set_alarm|create_alarm|alarm|wake_up",
        "Set an alarm|Set an alarm clock",
        [parameter("time|at|alarm_time", "time", "The time|When")],
        [
            "Set an alarm for {time}.", "Wake me up at {time}.", "[Please |]set the alarm to {time}.",
            "Alarm at {time}[, please|].", "I must get up at {time}.", "[Can|Could] you set an alarm for {time}?",
            "I need an alarm at {time}.",
        ],
    ),
    family(
        "translate|translate_text|translator",
        "Translate a text|Translate text into another language",
        [
            parameter("text|sentence|phrase", "phrase", "The text|Text to translate"),
            parameter("language|target|target_language|to", "language", "Target language|The language"),
        ],
        [
            "Translate '{text}' [into|to] {language}.", "How do you say '{text}' in {language}?",
            "What is '{text}' in {language}?", '[Please |]translate "{text}" to {language}.',
            "Say '{text}' in {language}.", "Give me '{text}' in {language}.", "I need '{text}' in {language}.",
        ],
    ),
    family(
        "convert_currency|currency_converter|exchange|convert_money",
        "Convert an amount of money|Convert between currencies",
        [
            parameter("amount|value|sum", "int", "The amount|How much"),
            parameter("from_currency|from|source", "currency", "Source currency|From"),
            parameter("to_currency|to|target", "currency", "Target currency|To"),
        ],
        [
            "Convert {amount} {from_currency} to {to_currency}.",
            "How much is {amount} {from_currency} in {to_currency}?",
            "What is {amount} {from_currency} in {to_currency}?",
            "Change {amount} {from_currency} into {to_currency}.",
            "[Please |]convert {amount} {from_currency} into {to_currency}.",
            "{amount} {from_currency} in {to_currency}?",
            "I have {amount} {from_currency}. How much is that in {to_currency}?",
        ],
    ),
    family(
        "get_stock_price|stock_price|stock|get_quote",
        "Get a stock price|Current price of a share",
        [parameter("symbol|ticker|stock", "ticker", "Ticker symbol|The symbol|Stock symbol, e.g. ABC")],
        [
            "What is the [stock |]price of {symbol}?", "How much is a {symbol} share?",
            "Get the stock price of {symbol}.", "How is {symbol} doing?", "Price of {symbol}[, please|]?",
            "Show me the {symbol} stock.", "Where is {symbol} trading?",
        ],
    ),
    family(
        "book_flight|search_flights|find_flights|flights",
        "Book a flight|Find flights between two cities",
        [
            parameter("origin|from|from_city|departure", "city", "From|Departure city|Origin"),
            parameter("destination|to|to_city|arrival", "city", "To|Destination city|Where to"),
            parameter("date|day|departure_date", "date", "The date|Day of travel", False),
        ],
        [
            "Book a flight from {origin} to {destination}[ on {date}|].",
            "Find flights from {origin} to {destination}[ on {date}|].",
            "I want to fly from {origin} to {destination}[ on {date}|].",
            "Are there flights from {origin} to {destination}[ on {date}|]?",
            "I need a flight from {origin} to {destination}[ on {date}|].", "Fly me from {origin} to {destination}.",
            "[Please |]book {origin} to {destination}[ on {date}|].",
        ],
    ),
    family(
        "book_hotel|find_hotel|reserve_hotel|hotel_search",
        "Book a hotel|Find a hotel room",
        [
            parameter("city|location|place", "city", "The city|Where"),
            parameter("nights|num_nights|duration", "small", "Number of nights|How many nights"),
        ],
        [
            "Book a hotel in {city} for {nights} nights.", "I need a hotel in {city} for {nights} nights.",
            "Find me a room in {city} for {nights} nights.", "Hotel in {city}, {nights} nights.",
            "Reserve {nights} nights in {city}.", "[Please |]reserve a hotel in {city} for {nights} nights.",
            "We stay {nights} nights in {city} and need a hotel.",
        ],
    ),
    family(
        "play_music|play_song|play|music_player",
        "Play music|Play a song",
        [parameter("title|song|track|query", "phrase", "The song|Title")],
        [
            "Play '{title}'.", "[Please |]play the song '{title}'.", "I want to hear '{title}'.",
            'Put on "{title}".', "Start the song '{title}'.", "[Can|Could] you play '{title}'?",
            "Let me hear '{title}'.",
        ],
    ),
    family(
        "create_event|add_event|calendar_add|schedule_meeting|create_calendar_event",
        "Create a calendar event|Add an event to the calendar",
        [
            parameter("title|name|summary", "phrase", "Title|Name of the event"),
            parameter("date|day|when", "date", "The date|Day"),
            parameter("time|start_time|at", "time", "Start time|Time", False),
        ],
        [
            "Add '{title}' to my calendar on {date}[ at {time}|].",
            "Create an event '{title}' on {date}[ at {time}|].", "Schedule '{title}' for {date}[ at {time}|].",
            "Put '{title}' in the calendar for {date}[, {time}|].", "New event: '{title}', {date}[, {time}|].",
            "[Please |]plan '{title}' on {date}[ at {time}|].",
            "I have '{title}' on {date}[ at {time}|], put it in my calendar.",
        ],
    ),
    family(
        "turn_on_light|light_on|switch_light_on",
        "Turn on a light|Switch the light on in a room",
        [parameter("room|location|where", "room", "The room|Which room")],
        [
            "Turn on the light in the {room}.", "[Please |]switch on the {room} light.",
            "Light on in the {room}[, please|].", "It is dark in the {room}.", "Turn the {room} light on.",
            "Lights on in the {room}!", "I need light in the {room}.",
        ],
    ),
    family(
        "set_temperature|set_thermostat|thermostat|heat",
        "Set the temperature of a room|Set the thermostat",
        [
            parameter("temperature|degrees|value", "small", "Degrees|Target temperature"),
            parameter("room|location", "room", "The room|Which room", False),
        ],
        [
            "Set the temperature [in the {room} |]to {temperature} degrees.",
            "Make it {temperature} degrees[ in the {room}|].", "Heat the {room} to {temperature} degrees.",
            "I want {temperature} degrees[ in the {room}|].",
            "[Please |]set the thermostat [in the {room} |]to {temperature}.",
            "Thermostat [in the {room} |]to {temperature} degrees.",
            "Change the temperature [of the {room} |]to {temperature} degrees.",
        ],
    ),
    family(
        "get_user|find_user|lookup_user|get_customer|user_info",
        "Find a user|Get a user's data|Look up a user by name",
        [parameter("name|user|username|user_name", "name", "The name|User name|Who")],
        [
            "Who is the user {name}?", "Find the user {name}.", "Look up {name}[ in the user list|].",
            "Get the data of {name}.", "Show me the user {name}.", "What do we know about the user {name}?",
            "Get the user {name}.",
        ],
    ),
    family(
        "get_order|order_status|track_order|lookup_order|check_order",
        "Get an order|Status of an order|Track an order",
        [parameter("order_id|id|order|number", "code", "The order number|Order id")],
        [
            "Where is my order {order_id}?", "What is the status of order {order_id}?", "Track order {order_id}.",
            "Check [the |]order {order_id}.", "[Please |]look up order {order_id}.",
            "Has order {order_id} been sent?", "Find the order {order_id}.",
        ],
    ),
    family(
        "read_file|open_file|load_file|cat_file",
        "Read a file|Returns the content of a file",
        [parameter("path|filename|file|name", "path", "The path|File name")],
        [
            "Read the file {path}.", "Open {path}.", "Show me {path}.", "What is in {path}?",
            "[Please |]show the file {path}.", "[Can|Could] you read {path}?", "Print the content of {path}.",
        ],
    ),
    family(
        "roll_dice|dice|random_number|roll",
        "Roll a dice|Random number from 1 to the number of sides",
        [parameter("sides|max|faces", "small", "Number of sides|Highest number")],
        [
            "Roll a dice with {sides} sides.", "Give me a random number up to {sides}.",
            "Roll a {sides} sided dice.", "Throw a dice with {sides} sides.",
            "Random number from 1 to {sides}[, please|].", "I need a random number between 1 and {sides}.",
            "[Please |]roll a die with {sides} sides.",
        ],
    ),
    family(
        "remember|save_note|add_note|create_note|add_todo",
        "Save a note|Add a note|Store a short text",
        [parameter("text|note|content", "phrase", "The note|The text")],
        [
            "Save a note: {text}", "Note: {text}", "Write down a note: {text}", "[Please |]note '{text}'.",
            "Add the note '{text}'.", "Make a note: {text}", "New note: {text}",
        ],
    ),
    family(
        "get_news|news|latest_news|headlines",
        "Get the latest news|News about a topic|Headlines",
        [
            parameter("topic|subject|query", "query", "The topic|What the news is about"),
            parameter("count|limit|number", "small", "How many headlines|Number of results", False),
        ],
        lines("""
            [Get|Show me|Give me] the [latest |]news about {topic}.
            [Get|Show me|Give me] {count} headlines about {topic}.
            What is new about {topic}?
            News about {topic}[, please|].
            Are there news about {topic}?
            I want to read {count} headlines about {topic}.
            [Can|Could] you get the news about {topic}?
            What are the headlines about {topic}?
            Show {count} news about {topic}.
            news {topic}
        """),
    ),
    family(
        "find_restaurant|restaurant_search|search_restaurants|restaurants",
        "Find a restaurant|Search restaurants in a city",
        [
            parameter("city|location|place", "city", "The city|Where"),
            parameter("cuisine|food|kitchen", "enum:italian,indian,thai,french,greek", "Kind of food|Cuisine", False),
        ],
        lines("""
            Find [a|an|me a] [{cuisine} |]restaurant in {city}.
            Where can I eat [{cuisine} food |]in {city}?
            I am hungry. Is there a [{cuisine} |]restaurant in {city}?
            [Can|Could] you find a [{cuisine} |]restaurant in {city}?
            Show me [{cuisine} |]restaurants in {city}.
            I want to eat [{cuisine} food |]in {city}.
            Restaurants in {city}[, {cuisine} please|]?
            Search for a [{cuisine} |]restaurant in {city}.
            [Please |]look for [{cuisine} |]restaurants in {city}.
            Which [{cuisine} |]restaurants are in {city}?
        """),
    ),
    family(
        "transfer_money|send_money|pay|make_payment",
        "Send money to a person|Transfer an amount|Pay somebody",
        [
            parameter("amount|sum|value", "int", "The amount|How much"),
            parameter("recipient|to|name|person", "name", "Who gets the money|Recipient"),
            parameter("reason|note|reference|purpose", "phrase", "What it is for|Reference", False),
        ],
        lines("""
            Send {amount} euros to {recipient}[ for '{reason}'|].
            Pay {recipient} {amount} dollars[ for '{reason}'|].
            Transfer {amount} euros to {recipient}[ with the note '{reason}'|].
            [Please |]send {recipient} {amount} euros[ for '{reason}'|].
            I owe {recipient} {amount} euros. Please send it.
            [Can|Could] you transfer {amount} dollars to {recipient}[ for '{reason}'|]?
            Give {recipient} {amount} euros[ for '{reason}'|].
            I want to pay {amount} euros to {recipient}[ for '{reason}'|].
            Make a payment of {amount} to {recipient}.
            pay {amount} to {recipient}
        """),
    ),
    family(
        "create_ticket|open_ticket|new_ticket|report_issue",
        "Create a ticket|Open a support ticket|Report a problem",
        [
            parameter("title|subject|summary", "phrase", "Title|What is wrong"),
            parameter("priority|urgency|level", "enum:low,medium,high", "Priority|How urgent", False),
        ],
        lines("""
            Create a [{priority} priority |]ticket '{title}'.
            Open a ticket '{title}'[ with {priority} priority|].
            Report the problem '{title}'[ with {priority} priority|].
            [Please |]create the ticket '{title}'[, priority {priority}|].
            New ticket: '{title}'[, {priority} priority|].
            [Can|Could] you open a ticket for '{title}'[ with {priority} priority|]?
            I want to report '{title}'[, priority {priority}|].
            Make a ticket called '{title}'[ with {priority} priority|].
            There is a problem: '{title}'. Open a ticket.
            Add a ticket '{title}'[ and set the priority to {priority}|].
        """),
    ),
    family(
        "get_route|directions|navigate|get_directions|route",
        "Get a route|Directions between two places",
        [
            parameter("start|from|origin", "city", "Start|From where"),
            parameter("destination|to|end|goal", "city", "Destination|Where to"),
            parameter("mode|by|vehicle", "enum:car,train,bicycle", "How to travel|Means of transport", False),
        ],
        lines("""
            How do I get from {start} to {destination}[ by {mode}|]?
            Show me the way from {start} to {destination}[ by {mode}|].
            [Please |]give me a route from {start} to {destination}[ by {mode}|].
            Route from {start} to {destination}[ by {mode}|].
            I want to go from {start} to {destination}[ by {mode}|].
            [Can|Could] you find the way from {start} to {destination}[ by {mode}|]?
            Directions from {start} to {destination}[ by {mode}|], please.
            Navigate from {start} to {destination}[ by {mode}|].
            Get directions to {destination} from {start}[ by {mode}|].
            I travel from {start} to {destination} by {mode}. Which way?
        """),
    ),
    family(
        "define_word|dictionary|lookup_word|get_definition",
        "Look up a word|Get the definition of a word|Dictionary",
        [parameter("word|term|text", "word", "The word|Word to look up")],
        lines("""
            What does {word} mean?
            Define {word}.
            Define the word {word}.
            Look up the word {word}.
            What is the definition of {word}?
            What is the meaning of {word}?
            What does the word '{word}' mean?
            [Can|Could] you define '{word}'?
            Give me the definition of {word}.
            Find {word} in the dictionary.
        """),
    ),
    family(
        "set_volume|volume|change_volume",
        "Set the volume|Change the volume of the speakers",
        [
            parameter("level|volume|value", "small", "The level|Volume from 0 to 100"),
            parameter("room|location|where", "room", "The room|Which room", False),
        ],
        lines("""
            Set the volume [in the {room} |]to {level}.
            Volume {level}[ in the {room}|], please.
            Turn the volume [in the {room} |]to {level}.
            [Please |]change the volume to {level}[ in the {room}|].
            I want volume {level}[ in the {room}|].
            [Can|Could] you set the volume to {level}[ in the {room}|]?
            Make the volume {level}[ in the {room}|].
            Put the volume at {level}[ in the {room}|].
            The volume should be {level}[ in the {room}|].
            Play at volume {level}[ in the {room}|].
        """),
    ),
]  # fmt: skip
ROOMS = [
    "kitchen",
    "bedroom",
    "living room",
    "bathroom",
    "office",
    "garage",
    "hall",
    "cellar",
    "garden",
    "nursery",
    "library",
    "attic",
]

INVENTED_VERBS = {
    "get": ["Get", "Give me", "Show me", "I need"],
    "find": ["Find", "Look for", "Search for", "Where is"],
    "lookup": ["Look up", "Check", "Find"],
    "create": ["Create", "Make", "Add", "I want"],
    "delete": ["Delete", "Remove", "Get rid of"],
    "update": ["Update", "Change", "Edit"],
    "send": ["Send", "Please send", "Deliver"],
    "open": ["Open", "Please open", "Show"],
    "close": ["Close", "Shut", "Please close"],
    "check": ["Check", "Test", "What about", "How is"],
    "book": ["Book", "Reserve", "I want to book"],
    "start": ["Start", "Launch", "Run"],
    "stop": ["Stop", "End", "Halt"],
    "list": ["List", "Show all of", "Show"],
    "buy": ["Buy", "Order", "I want to buy"],
    "paint": ["Paint", "Colour", "Draw"],
    "cancel": ["Cancel", "Call off", "I want to cancel"],
    "save": ["Save", "Store", "Keep"],
    "load": ["Load", "Fetch", "Bring up"],
    "move": ["Move", "Shift", "Please move"],
    "clean": ["Clean", "Tidy up", "Wash"],
    "repair": ["Repair", "Fix", "Mend"],
    "rent": ["Rent", "Hire", "I would like to rent"],
    "sell": ["Sell", "I want to sell", "Please sell"],
    "print": ["Print", "Print out", "I need a print of"],
    "measure": ["Measure", "Take the measure of", "Gauge"],
    "approve": ["Approve", "Accept", "Agree to"],
    "archive": ["Archive", "File away", "Put away"],
    "count": ["Count", "How many are there of", "Give me the number of"],
    "upload": ["Upload", "Put online", "Publish"],
    "download": ["Download", "Get a copy of", "Fetch"],
    "enable": ["Enable", "Switch on", "Activate"],
    "disable": ["Disable", "Switch off", "Deactivate"],
}
INVENTED_PARAMETERS = [
    ("id", "code", "with [the |]id {v}"), ("name", "name", "[called|named|with the name] {v}"), ("code", "code",
    "with [the |]code {v}"),
    ("city", "city", "in {v}"), ("count", "small", "with [a |]count [of |]{v}"), ("colour", "colour",
    "in [the colour |]{v}"), ("color", "colour", "in [the color |]{v}"),
    ("date", "date", "on {v}"), ("time", "time", "at {v}"), ("email", "email", "for {v}"), ("size",
    "enum:small,medium,large", "in size {v}"), ("priority", "enum:low,high,urgent", "with {v} priority"),
    ("amount", "int", "for [an amount of |]{v}"), ("country", "country", "from {v}"), ("owner", "name", "of {v}"),
    ("user", "name", "for {v}"), ("level", "small", "at level {v}"),
    ("tag", "word", "with [the |]tag {v}"), ("language", "language", "in {v}"), ("room", "room", "in the {v}"), ("day",
    "weekday", "on {v}"), ("text", "phrase", "with the text '{v}'"),
    ("weight", "int", "with [a |]weight [of |]{v}"), ("mode", "enum:fast,slow,auto", "in {v} mode"), ("price", "number",
    "for {v} euros"), ("title", "phrase", "with the title '{v}'"),
    ("status", "enum:open,closed,pending", "with [the |]status {v}"), ("format", "enum:pdf,csv,html,json",
    "as {v}"), ("quantity", "small", "with [a |]quantity [of |]{v}"), ("reason", "phrase", "because of '{v}'"),
    ("comment", "phrase", "with the comment '{v}'"), ("product", "product", "for the {v}"), ("start", "date",
    "from {v}"), ("end", "date", "until {v}"), ("key", "code", "with [the |]key {v}"), ("file", "path",
    "from the file {v}"), ("currency", "currency", "in {v}"), ("limit", "small", "with [a |]limit [of |]{v}"),
    ("category", "word", "in the category {v}"), ("recipient", "name", "for {v}"), ("address", "email", "to {v}"),
    ("speed", "enum:slow,normal,fast", "at {v} speed"), ("position", "small", "at position {v}"),
    ("description", "phrase", "with the description '{v}'"), ("username", "name", "for the user {v}"),
]  # fmt: skip

PARAMETER_TEXTS = ["The {}", "The {} to use", "Its {}", "{}", "Value of {}", "Which {}"]


def value_of(sampler: Sampler, kind: str) -> str | float:
    """A value of a parameter kind."""
    if kind.startswith("enum:"):
        return sampler.any(kind[5:].split(","))
    makers = {
        "city": sampler.city,
        "name": sampler.name,
        "email": sampler.email,
        "date": sampler.date,
        "time": sampler.time,
        "code": sampler.random_code,
        "product": sampler.product,
        "word": sampler.word,
        "colour": lambda: sampler.pick(values.COLOURS),
        "country": lambda: sampler.pick(values.COUNTRIES),
        "language": lambda: sampler.pick(values.LANGUAGES),
        "currency": lambda: sampler.any(values.CURRENCIES),
        "weekday": lambda: sampler.any(values.WEEKDAYS),
        "room": lambda: sampler.pick(ROOMS),
        "small": lambda: sampler.rng.randint(1, 60),
        "int": lambda: sampler.rng.randint(1, 2000),
        "number": lambda: (
            sampler.rng.randint(0, 9999)
            if sampler.chance(0.8)
            else sampler.rng.randint(1, 999) / 10
        ),
        "expression": lambda: expression(sampler),
        "ticker": lambda: "".join(
            sampler.any("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(sampler.rng.randint(2, 5))
        ),
        "path": lambda: file_path(sampler),
        "query": lambda: (
            sampler.pick(values.TOPICS) if sampler.chance(0.4) else sampler.words(1, 4)
        ),
        "phrase": lambda: (
            sampler.words(1, 4)
            if sampler.chance(0.6)
            else sampler.sentence().rstrip(".?!").replace("'", "")
        ),
    }
    return makers[kind]()


def expression(sampler: Sampler) -> str:
    """An arithmetic expression with two or three numbers."""
    numbers = [str(sampler.rng.randint(1, 999)) for _ in range(sampler.rng.choice((2, 2, 3)))]
    space = sampler.any([" ", ""])
    return "".join(
        f"{space}{sampler.any(['+', '-', '*', '/'])}{space}{number}" if position else number
        for position, number in enumerate(numbers)
    )


def file_path(sampler: Sampler) -> str:
    """A file name, sometimes with a folder."""
    name = f"{sampler.word()}.{sampler.any(['txt', 'py', 'md', 'json', 'csv', 'log'])}"
    return f"{sampler.any(['/', ''])}{sampler.word()}/{name}" if sampler.chance(0.4) else name


def property_schema(sampler: Sampler, kind: str, description: str) -> dict[str, Any]:
    """The JSON schema of one parameter."""
    json_type = {"small": "integer", "int": "integer", "number": "number"}.get(kind, "string")
    schema: dict[str, Any] = {"type": json_type}
    if description:
        schema["description"] = description
    if kind.startswith("enum:"):
        schema["enum"] = kind[5:].split(",")
    return schema


def tool_definition(
    sampler: Sampler, name: str, description: str, properties: dict[str, Any], required: list[str]
) -> dict[str, Any]:
    """A tool in the OpenAI form, with the small differences between clients."""
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required or sampler.chance(0.6):
        parameters["required"] = required
    if sampler.chance(0.12):
        parameters["additionalProperties"] = False
    function: dict[str, Any] = {"name": name, "description": description, "parameters": parameters}
    if not description:
        del function["description"]
    if sampler.chance(0.08):
        function["strict"] = True
    return {"type": "function", "function": function}


def family_request(sampler: Sampler, chosen: Family) -> Request:
    """A well-known tool under one of its spellings, with a sentence for it."""
    names = {item.names[0]: sampler.any(item.names) for item in chosen.parameters}
    if len(set(names.values())) < len(names):
        names = {key: key for key in names}
    shown_descriptions = sampler.chance(0.7)
    properties, required, arguments = {}, [], {}
    sentence = sampler.casual(sampler.framed(sampler.template(chosen.requests)))
    used = set(re.findall(r"\{(\w+)\}", sentence))
    optional_left_out = sampler.chance(0.4)
    shown: dict[str, Any] = {}
    for item in chosen.parameters:
        key, name = item.names[0], names[item.names[0]]
        if not item.required and key not in used and optional_left_out:
            continue
        properties[name] = property_schema(
            sampler, item.kind, sampler.any(item.descriptions) if shown_descriptions else ""
        )
        if item.required or (key in used and sampler.chance(0.2)):
            required.append(name)
        if key in used:
            shown[key] = arguments[name] = value_of(sampler, item.kind)
    tool_name = sampler.any(chosen.names)
    tool = tool_definition(
        sampler, tool_name, sampler.any(chosen.descriptions), properties, required
    )
    return Request(tool, fill(sentence, shown), arguments)


def invented_request(sampler: Sampler) -> Request:
    """A tool that no training conversation had before, with a sentence made from its own words."""
    verb = sampler.any(list(INVENTED_VERBS))
    noun = (
        sampler.invented_word()
        if sampler.chance(0.5)
        else sampler.pick(values.NOUNS + values.PRODUCTS)
    )
    if sampler.chance(0.2):
        noun = f"{sampler.pick(values.ADJECTIVES)}_{noun}"
    name = sampler.any(
        [
            f"{verb}_{noun}",
            f"{verb}_{noun}",
            f"{noun}_{verb}",
            f"{verb}{noun.title().replace('_', '')}",
            f"{noun}.{verb}" if sampler.chance(0.2) else f"{verb}_{noun}",
        ]
    )
    shown_noun = noun.replace("_", " ")
    chosen = sampler.rng.sample(INVENTED_PARAMETERS, sampler.rng.choice((0, 1, 1, 1, 2, 2, 3)))
    properties, arguments, parts, required = {}, {}, [], []
    described = sampler.chance(0.5)
    for key, kind, pattern in chosen:
        shown_key = f"{noun}_{key}" if sampler.chance(0.15) else key
        properties[shown_key] = property_schema(
            sampler, kind, sampler.any(PARAMETER_TEXTS).format(key) if described else ""
        )
        if not sampler.chance(0.85):
            continue
        required.append(shown_key)
        arguments[shown_key] = value_of(sampler, kind)
        bare = sampler.any([f"with {key} {{v}}", f"with the {key} {{v}}"])
        parts.append(
            fill(
                sampler.expand(pattern) if sampler.chance(0.7) else bare,
                {"v": arguments[shown_key]},
            )
        )
    opening = sampler.any(INVENTED_VERBS[verb])
    article = sampler.any(["the ", "the ", "a ", ""])
    sentence = " ".join([f"{opening} {article}{shown_noun}", *parts])
    sentence = (
        sampler.any(["", "", "", "Please ", "Can you ", "Could you "]) + sentence
        if opening[0] not in "IPWH"
        else sentence
    )
    sentence = sentence[0].upper() + sentence[1:].replace("Please Please", "Please")
    sentence = sampler.casual(
        re.sub(r"^(Please|Can you|Could you) (\w)", lambda m: f"{m[1]} {m[2].lower()}", sentence)
        + ("?" if sentence.startswith(("Can", "Could", "Wh", "How")) else "."),
        has_values=True,
    )
    description = sampler.any(
        [
            f"{verb.title()} a {shown_noun}",
            f"{verb.title()} {shown_noun}",
            f"Can {verb} the {shown_noun}",
            f"Use this to {verb} the {shown_noun}",
            f"{verb.title()} the {shown_noun} and return the result",
            f"A tool to {verb} something: {shown_noun}",
            "",
        ]
    )
    return Request(
        tool_definition(sampler, name, description, properties, required), sentence, arguments
    )


def any_request(sampler: Sampler) -> Request:
    """A well-known or an invented tool with its sentence."""
    return (
        family_request(sampler, sampler.rng.choice(FAMILIES))
        if sampler.chance(0.5)
        else invented_request(sampler)
    )


def similar(first: Request, second: Request) -> bool:
    """Whether two tools could be meant by the same sentence."""

    def family_of(request: Request) -> int | str:
        for position, item in enumerate(FAMILIES):
            if request.name in item.names:
                return {1: 0, 3: 4, 6: 5, 7: 5, 9: 8, 11: 10}.get(position, position)
        return request.name

    return family_of(first) == family_of(second)


def is_sum(request: Request) -> bool:
    """Whether a request is a sum, which the model answers by itself where no tool fits."""
    return any(request.name in item.names for item in FAMILIES[5:8])


def distractors(sampler: Sampler, wanted: list[Request], count: int) -> list[dict[str, Any]]:
    """Tools that none of the wanted sentences is about."""
    found: list[Request] = []
    while len(found) < count:
        candidate = any_request(sampler)
        if not any(similar(candidate, other) for other in [*wanted, *found]):
            found.append(candidate)
    return [request.tool for request in found]


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A tool call in a message."""
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def call_text(calls: list[dict[str, Any]]) -> str:
    """The calls as the model writes them."""
    return "\n".join(
        f"<tool_call>\n{json.dumps(item['function'], ensure_ascii=False)}\n</tool_call>"
        for item in calls
    )


def again(sampler: Sampler, request: Request) -> tuple[Request, str] | None:
    """A second use of the same tool with another value for one argument, and the sentence for both."""
    keys = [
        key for key, value in request.arguments.items() if request.sentence.count(str(value)) == 1
    ]
    if not keys:
        return None
    key = sampler.rng.choice(keys)
    kind = {
        "city": "city",
        "location": "city",
        "place": "city",
        "city_name": "city",
        "name": "name",
        "user": "name",
    }
    old = request.arguments[key]
    if key in kind:
        new: Any = value_of(sampler, kind[key])
    elif isinstance(old, int):
        new = sampler.rng.randint(1, 99)
    elif isinstance(old, str) and " " not in old and old.isalnum():
        new = (
            sampler.random_code()
            if any(letter.isdigit() for letter in old) or old.isupper()
            else sampler.word()
        )
    else:
        return None
    if new == old or "enum" in request.tool["function"]["parameters"]["properties"][key]:
        return None
    joined = request.sentence.replace(
        str(old),
        f"{old} and {'in ' if kind.get(key) == 'city' and sampler.chance(0.3) else ''}{new}",
    )
    return Request(request.tool, "", request.arguments | {key: new}), joined


def parallel(sampler: Sampler) -> tuple[str, list[Request]]:
    """A sentence that needs two calls: the same tool twice, or two tools."""
    for _ in range(8):
        if sampler.chance(0.5):
            break
        request = family_request(sampler, sampler.rng.choice(FAMILIES[:3] + FAMILIES))
        if second := again(sampler, request):
            return second[1], [request, second[0]]
    while True:
        request, other = any_request(sampler), any_request(sampler)
        if not similar(request, other):
            break
    tail = (
        other.sentence[0].lower() + other.sentence[1:]
        if not other.sentence.startswith("I ")
        else other.sentence
    )
    joiner = sampler.any([" And ", " Also, ", " Then ", " And then "])
    first = request.sentence if request.sentence[-1] in ".?!" else request.sentence + "."
    return first + joiner + tail, [request, other]


# --------------------------------------------------------------------------- results

RESULT_KEYS = [
    ("temperature", "small"), ("condition", "enum:sunny,cloudy,rainy,windy,snowy,foggy,clear,stormy"), ("status",
    "enum:open,closed,shipped,ready,pending,done,active"), ("owner", "name"), ("price", "number"),
    ("city", "city"), ("time", "time"), ("date", "date"), ("name", "name"), ("id", "code"), ("count", "small"),
    ("humidity", "small"), ("unit", "enum:celsius,fahrenheit"), ("total", "int"), ("currency", "currency"),
    ("email", "email"), ("colour", "colour"), ("product", "product"), ("stock", "small"), ("order_id", "code"),
    ("delivery_date", "date"), ("room_number", "int"), ("message", "phrase"), ("title", "phrase"), ("country",
    "country"),
    ("balance", "int"), ("score", "small"), ("wind_speed", "small"), ("level", "small"), ("weather",
    "enum:sunny,cloudy,rainy,snowy"), ("result", "int"), ("forecast", "enum:sun,rain,snow,clouds"),
]  # fmt: skip
ERRORS = [
    "not found",
    "no connection",
    "permission denied",
    "unknown city",
    "timeout",
    "invalid id",
    "service unavailable",
    "no such file",
    "the tool failed",
    "bad request",
    "out of stock",
]


def listed(parts: Sequence[str]) -> str:
    """The parts as a list in a sentence."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def spoken(value: object) -> str:
    """A JSON value inside a sentence."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def result_with_answer(sampler: Sampler, request: Request) -> tuple[str, str]:
    """What a tool returned, as text or JSON, and the sentence that tells the user."""
    kind = sampler.rng.random()
    if kind < 0.62:
        return object_result(sampler, request)
    if kind < 0.72:
        value = value_of(sampler, sampler.any(["int", "number", "small", "int"]))
        return str(value), f"The result is {value}."
    if kind < 0.86:
        text = sampler.words(1, 5) if sampler.chance(0.4) else sampler.sentence().rstrip(".?!")
        if sampler.chance(0.3):
            sky, unit = (
                sampler.any(["sunny", "rain", "clouds", "snow", "fog"]),
                sampler.any(["C", "degrees", "°C", "F"]),
            )
            text = f"{sky}, {sampler.rng.randint(-9, 39)} {unit}"
        return text, f"The tool says: {text}."
    if kind < 0.94:
        maker = sampler.any(["name", "product", "city", "word", "code"])
        items = [str(value_of(sampler, maker)) for _ in range(sampler.rng.randint(2, 4))]
        return json.dumps(items, ensure_ascii=False), f"The results are {listed(items)}."
    error = sampler.pick(ERRORS)
    text = json.dumps({"error": error}) if sampler.chance(0.6) else f"Error: {error}"
    return text, f"The tool reported an error: {error}."


def object_result(sampler: Sampler, request: Request) -> tuple[str, str]:
    """A JSON object and the sentence that names all its values."""
    record: dict[str, Any] = {}
    if request.arguments and sampler.chance(0.4):
        key = sampler.rng.choice(list(request.arguments))
        record[key] = request.arguments[key]
    for key, value_kind in sampler.rng.sample(RESULT_KEYS, sampler.rng.randint(1, 3)):
        other_key = sampler.invented_word() if sampler.chance(0.5) else sampler.pick(values.NOUNS)
        record[other_key if sampler.chance(0.15) else key] = value_of(sampler, value_kind)
    if sampler.chance(0.1):
        record[sampler.any(["available", "found", "success", "ok", "in_stock"])] = sampler.chance(
            0.5
        )
    parts = [f"the {key.replace('_', ' ')} is {spoken(value)}" for key, value in record.items()]
    sentence = listed(parts)
    text = json.dumps(
        record, ensure_ascii=False, separators=None if sampler.chance(0.8) else (",", ":")
    )
    return text, f"{sentence[0].upper()}{sentence[1:]}."

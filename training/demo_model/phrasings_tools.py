"""More requests for the well-known tools, by the first name of each family; append only."""

from __future__ import annotations

from training.demo_model.phrasings import lines

REQUESTS = {
    "get_weather": lines("""
        what's the weather in {city}
        weather {city}
        Tell me about the weather in {city}[ in {unit}|].
        What will the weather be in {city}[ today|]?
        How cold is it in {city}[ in {unit}|]?
        How hot is it in {city}[ in {unit}| now|]?
        [Can|Could] you tell me the weather in {city}[ in {unit}|]?
        [Can|Could] you get the weather for {city}[ in {unit}|]?
        I want to know the weather in {city}[ in {unit}|].
        I need the weather [in|for] {city}[ in {unit}|].
        Get the [current |]weather [in|for] {city}[ in {unit}|].
        Show me the [current |]weather in {city}.
        What is the current [weather|temperature] in {city}[ in {unit}|]?
        Does it rain in {city}[ now| today|]?
        Should I take a coat in {city}?
        Is the weather [nice|good|bad] in {city}?
        The weather in {city}[, please| in {unit}, please].
        What's the temperature in {city}[ in {unit}|]?
        Use {unit}: what is the weather in {city}?
        How does the sky look in {city}?
    """),
    "get_forecast": lines("""
        Tell me the {days} day forecast for {city}.
        What will the weather be like in {city} over the next {days} days?
        [Can|Could] you get the forecast for {city} for {days} days?
        Weather in {city} for the next {days} days?
        I want a forecast for {city} for {days} days.
        Get the {days} day forecast for {city}.
        forecast {city} {days} days
        Will it rain in {city} in the next {days} days?
        For {city}, give me {days} days of forecast.
        Show me a {days} day forecast for {city}.
    """),
    "get_time": lines("""
        what time is it in {city}
        time in {city}
        Do you know the time in {city}?
        What is the local time in {city}?
        Please tell me the time in {city}.
        Get the time in {city}.
        I need the time in {city}.
        I want to know what time it is in {city}.
        Show me the time in {city}.
        What does the clock say in {city}?
    """),
    "get_date": lines("""
        what day is it
        What's the date[ today|]?
        Can you tell me the date?
        Give me today's date.
        Please tell me today's date.
        Which day is it today?
        I need today's date.
        Do you know what day it is?
    """),
    "get_local_time": lines("""
        what time is it
        Can you tell me the time?
        Give me the [current |]time.
        Please tell me the time.
        What is the current time?
        I need the time.
        Which time is it now?
        What time do we have?
    """),
    "add": lines("""
        what is {a} + {b}
        add {a} {b}
        Can you add {a} and {b}?
        What is the sum of {a} and {b}?
        Please add {a} and {b}.
        What's {a} plus {b}?
        How much is {a} + {b}?
        Use the tool to add {a} and {b}.
        I need the sum of {a} and {b}.
        {a} plus {b}?
        Add the numbers {a} and {b}.
    """),
    "multiply": lines("""
        what is {a} * {b}
        multiply {a} {b}
        Can you multiply {a} by {b}?
        What is the product of {a} and {b}?
        What's {a} times {b}?
        How much is {a} * {b}?
        Use the tool to multiply {a} and {b}.
        I need the product of {a} and {b}.
        {a} times {b}?
        Multiply the numbers {a} and {b}.
    """),
    "calculator": lines("""
        what is {expression}
        What's {expression}?
        Can you calculate {expression}?
        Use the calculator: {expression}
        Please calculate {expression}.
        I need the result of {expression}.
        Give me the value of {expression}.
        Compute {expression}.
        Tell me the result of {expression}.
        Solve {expression}.
    """),
    "search": lines("""
        search for {query}
        google {query}
        Look up {query}.
        Can you look up {query}?
        Find out about {query}.
        Find {query} on the internet.
        Find something about {query}.
        I want to read about {query}.
        I need information about {query}.
        Please search the web for {query}.
        Search online for {query}.
        Search: {query}
        Run a search for {query}.
        What does the web say about {query}?
        Look on the internet for {query}.
    """),
    "search_products": lines("""
        I want a {query}[ under {max_price} euros|].
        I need a {query}[ for at most {max_price} euros|].
        Search for a {query}[ under {max_price} dollars|].
        Do you have a {query}[ for less than {max_price} euros|]?
        Find a {query}[ below {max_price} euros|].
        Look for a {query}[ under {max_price} euros|].
        Show me a {query}[ that costs at most {max_price} euros|].
        Can you find [me |]a {query}[ under {max_price} dollars|]?
        Which {query} do you have[ under {max_price} euros|]?
        I would like to buy a {query}[ for up to {max_price} dollars|].
        Search the catalogue for a {query}.
        Please find [me |]a {query}[ with a price under {max_price}|].
    """),
    "send_email": lines("""
        Send an email to {to} with the subject {subject}.
        Send an email to {to}. Subject: {subject}
        Please send an email to {to} with the subject '{subject}'.
        Can you email {to} with the subject '{subject}'?
        Write an email to {to}, subject '{subject}'.
        Write to {to} with the subject "{subject}".
        Email to {to}: {subject}
        New email to {to}, subject {subject}.
        Compose an email to {to} with the subject '{subject}'.
        Can you send {to} an email with the subject '{subject}'?
        I need to email {to} about '{subject}'.
    """),
    "send_message": lines("""
        Send '{text}' as a message to {to}.
        Send a message to {to} that says '{text}'.
        Send {to} a message: {text}
        Send {to} this: {text}
        Please tell {to}: {text}
        Can you text {to} '{text}'?
        Can you send {to} the message '{text}'?
        Write {to} a message: {text}
        Text "{text}" to {to}.
        Let {to} know: {text}
        Say '{text}' to {to}.
    """),
    "set_timer": lines("""
        set a timer for {minutes} minutes
        timer {minutes} minutes
        Set a {minutes} minute timer.
        Start a timer for {minutes} minutes.
        Please set a timer for {minutes} minutes.
        Can you start a {minutes} minute timer?
        I need a timer for {minutes} minutes.
        Count down {minutes} minutes.
        Tell me when {minutes} minutes are over.
        Wake me in {minutes} minutes.
    """),
    "set_alarm": lines("""
        set an alarm for {time}
        wake me at {time}
        Please wake me up at {time}.
        Set my alarm for {time}.
        Can you wake me at {time}?
        Please set an alarm for {time}.
        The alarm should ring at {time}.
        Make an alarm for {time}.
        I want to get up at {time}.
        Set the alarm clock to {time}.
    """),
    "translate": lines("""
        translate '{text}' to {language}
        Translate this to {language}: {text}
        Translate this into {language}: {text}
        Please translate '{text}' into {language}.
        Can you translate '{text}' to {language}?
        What does '{text}' mean in {language}?
        How is '{text}' said in {language}?
        I want to say '{text}' in {language}.
        Write '{text}' in {language}.
        Put "{text}" into {language}.
        {language} for '{text}'?
    """),
    "convert_currency": lines("""
        convert {amount} {from_currency} to {to_currency}
        {amount} {from_currency} to {to_currency}
        Can you convert {amount} {from_currency} to {to_currency}?
        How many {to_currency} are {amount} {from_currency}?
        How many {to_currency} do I get for {amount} {from_currency}?
        Exchange {amount} {from_currency} for {to_currency}.
        What are {amount} {from_currency} in {to_currency}?
        I want to change {amount} {from_currency} to {to_currency}.
        Give me {amount} {from_currency} in {to_currency}.
        Tell me how much {amount} {from_currency} is in {to_currency}.
    """),
    "get_stock_price": lines("""
        stock price of {symbol}
        price of {symbol}
        Get the price of {symbol}.
        What does a {symbol} share cost?
        What is {symbol} worth?
        How much does {symbol} cost?
        Look up the stock {symbol}.
        Can you check the price of {symbol}?
        Tell me the stock price of {symbol}.
        What's the price of {symbol} now?
    """),
    "book_flight": lines("""
        book a flight from {origin} to {destination}[ on {date}|]
        Flight from {origin} to {destination}[ on {date}|], please.
        Search for flights from {origin} to {destination}[ on {date}|].
        I am flying from {origin} to {destination}[ on {date}|].
        Show me flights from {origin} to {destination}[ on {date}|].
        Can you book a flight from {origin} to {destination}[ on {date}|]?
        Get me a flight from {origin} to {destination}[ on {date}|].
        I have to go from {origin} to {destination}[ on {date}|].
        Please find a flight from {origin} to {destination}[ on {date}|].
        I need to fly to {destination} from {origin}[ on {date}|].
        Which flights go from {origin} to {destination}[ on {date}|]?
        We want to fly to {destination} from {origin}[ on {date}|].
    """),
    "book_hotel": lines("""
        book a hotel in {city} for {nights} nights
        Find a hotel in {city} for {nights} nights.
        Can you book a hotel in {city} for {nights} nights?
        I want a room in {city} for {nights} nights.
        Get me a hotel in {city} for {nights} nights.
        I will be in {city} for {nights} nights and need a hotel.
        A hotel in {city} for {nights} nights, please.
        Book {nights} nights in {city}.
        Look for a hotel in {city} for {nights} nights.
        Book a room for {nights} nights in {city}.
    """),
    "play_music": lines("""
        play '{title}'
        Play the song {title}.
        Play {title}.
        Can you play the song '{title}'?
        I would like to hear '{title}'.
        Play me '{title}'.
        Please play "{title}".
        Put '{title}' on.
        Start playing '{title}'.
        Play the track '{title}'.
    """),
    "create_event": lines("""
        Put '{title}' on my calendar for {date}[ at {time}|].
        Add the event '{title}' on {date}[ at {time}|].
        Add '{title}' on {date}[ at {time}|].
        Create the event '{title}' for {date}[ at {time}|].
        Make an event '{title}' on {date}[ at {time}|].
        Can you add '{title}' to my calendar on {date}[ at {time}|]?
        Please schedule '{title}' on {date}[ at {time}|].
        Calendar: '{title}' on {date}[ at {time}|].
        Plan '{title}' for {date}[ at {time}|].
        On {date}[ at {time}|] I have '{title}'. Put it in the calendar.
        Schedule a meeting '{title}' on {date}[ at {time}|].
        Enter '{title}' in my calendar for {date}[ at {time}|].
    """),
    "turn_on_light": lines("""
        light on in the {room}
        turn on the {room} light
        Turn on the {room} light.
        Turn on the lights in the {room}.
        Switch on the light in the {room}.
        Can you turn on the light in the {room}?
        Please turn on the light in the {room}.
        Make it bright in the {room}.
        {room} light on, please.
        I cannot see anything in the {room}.
    """),
    "set_temperature": lines("""
        set the temperature to {temperature} degrees[ in the {room}|]
        Set [the {room}|it] to {temperature} degrees.
        Set the temperature to {temperature}[ in the {room}|].
        Can you set the temperature [in the {room} |]to {temperature} degrees?
        Please make it {temperature} degrees[ in the {room}|].
        Change the thermostat [in the {room} |]to {temperature}.
        I would like {temperature} degrees[ in the {room}|].
        Turn the heating [in the {room} |]to {temperature} degrees.
        {temperature} degrees[ in the {room}|], please.
        Put the thermostat at {temperature}[ in the {room}|].
        It should be {temperature} degrees[ in the {room}|].
    """),
    "get_user": lines("""
        find user {name}
        find the user {name}
        Search for the user {name}.
        Can you find the user {name}?
        Please look up the user {name}.
        Look up the user {name}.
        Get me the data of the user {name}.
        Show the data of {name}.
        I need the data of {name}.
        Is there a user called {name}?
        Open the account of {name}.
    """),
    "get_order": lines("""
        where is order {order_id}
        track {order_id}
        order {order_id}
        What about my order {order_id}?
        When does my order {order_id} arrive?
        Can you track order {order_id}?
        Can you check order {order_id}?
        Please check order {order_id}.
        My order is {order_id}. Where is it?
        Look up order {order_id}.
        Tell me the status of order {order_id}.
        I am waiting for order {order_id}.
        Show me order {order_id}.
    """),
    "read_file": lines("""
        read {path}
        cat {path}
        Read {path}.
        Open the file {path}.
        Please read {path}.
        Can you open {path}?
        Show me the content of {path}.
        Print {path}.
        What does {path} say?
        Load the file {path}.
        I need the content of {path}.
        Let me see {path}.
    """),
    "roll_dice": lines("""
        roll a dice with {sides} sides
        Roll a {sides} sided die.
        Can you roll a dice with {sides} sides?
        Please throw a die with {sides} sides.
        Give me a random number from 1 to {sides}.
        Pick a random number between 1 and {sides}.
        A random number up to {sides}, please.
        Roll the dice with {sides} sides.
        Throw a {sides} sided dice.
        I want to roll a die with {sides} sides.
    """),
    "remember": lines("""
        note: {text}
        Take a note: {text}
        Please save a note: {text}
        Save the note '{text}'.
        Write the note "{text}".
        Can you note '{text}'?
        Write this in my notes: {text}
        Add to my notes: {text}
        Add a note: {text}
        Note this: {text}
        Keep a note: {text}
    """),
}

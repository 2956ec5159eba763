"""More phrasings for small talk, self-description, refusals, memory and system prompts; append only."""

from __future__ import annotations

from training.demo_model.phrasings import lines

# In the order of `skills_chat.SMALL_TALK`.
SMALL_TALK = [
    lines("""
        hello
        hi
        hey
        hi there
        hello there
        Hello everyone[!|]
        Hello to you[!|.]
        Good morning[, Ouzel|, friend|, bot|]!
        Good [afternoon|day][, Ouzel|, friend|]!
        Morning[!|]
        Hey [Ouzel|bot|you|friend|buddy|model]
        Hi [Ouzel|bot|model|assistant|everyone]
        Hello [my friend|friend|computer|machine|robot|server]
        Nice to meet you[!|.]
        Pleased to meet you[!|.]
        Hi, nice to meet you[!|.]
        Welcome[!|]
        Hello hello
        Hey hey[!|]
        Hi again[!|]
        Hey there[, Ouzel|, bot|, friend|!]
        Greetings, [friend|Ouzel|bot|model][!|.]
        Good to see you[!|.]
        Say hello[ to me|].
        Hello from me[!|.]
        Hello, I am new here[.|!]
        Hi, I just [arrived|started|installed you][.|!]
        A good morning to you[!|.]
        Heya
        Hullo[!|]
        Hi bot, [hello|good morning][!|]
        Just saying [hi|hello][.|!]
        I wanted to say hello[.|!]
        Hello, [dear|little|small] [model|bot|assistant|bird][!|.]
    """),
    lines("""
        how are you
        how are you doing
        whats up
        hey whats up
        [hey|hi|hello], what's up?
        [Hey|Hi] [there|Ouzel|bot], how are you?
        sup
        How are you [this morning|right now|now|these days|tonight]?
        How are you feeling?
        How is everything?
        How's it going?
        [Hey|Hi|Hello|Hello there|Hi there], how's it going?
        How's life?
        How's your day?
        [Hey|Hi|Hello], how are you doing?
        Are you doing well?
        Are you good?
        Is all well?
        How do you do?
        What's new?
        Anything new?
        [Hey|Hi|Hello], are you well?
        Feeling good?
        You good?
        How goes it?
        How are things [today|going|with you]?
        Are you happy?
        How was your day?
        Did you sleep well?
        Tell me how you are.
        Good morning, how are you?
        I hope you are well.
        How do you feel right now?
        [Hello|Hi]! How are you?
        What is up?
        what's going on
        [So|And|Well,] how are you?
    """),
    lines("""
        thanks
        thank you
        ty
        thanks a lot
        Thank you for [this|that|the answer|the information|helping me|everything][!|.]
        Thanks for [this|that|the answer|helping|the help|your help|everything][!|.]
        [Oh|Ah|Okay|Ok|Yes|Alright|Super|Wonderful], thank you[!|.]
        [Okay|Ok|Alright|Super|Nice|Good|Wonderful|Awesome], thanks[!|.]
        Thank you very much[!|.]
        Thanks very much[!|.]
        Thanks so much[!|.]
        Thank you so much[!|.]
        A thousand thanks[!|.]
        [I am|I'm] [grateful|thankful][.|!]
        Thanks again[!|.]
        Thank you again[!|.]
        Thanks, [bot|Ouzel|model|friend][!|.]
        thank u
        Big thanks[!|.]
        That helps, thank you[!|.]
        That helped[ me|][ a lot|], thanks[!|.]
        I appreciate it[!|.]
        I appreciate your help[!|.]
        Very kind, thank you[!|.]
        Thank you, that was [good|helpful|useful|nice|all][!|.]
        Thanks, that was [good|helpful|useful|nice][!|.]
        Thanks, [good|well done|very nice][!|.]
        You helped me, thank you[!|.]
        Cool, thanks
        No, thank you[!|.]
        Yes, thanks[!|.]
        My thanks[!|.]
    """),
    lines("""
        bye
        goodbye
        bye bye
        good night
        cya
        see you
        See you [around|then|next time|again|next week|tonight][!|.]
        Bye, [Ouzel|bot|friend|model|see you|have a nice day|take care][!|.|]
        Goodbye, [Ouzel|bot|friend|model|see you|take care][!|.|]
        Okay, [bye|goodbye][!|.|]
        I must go[ now|][.|!]
        I need to go[ now|][.|!]
        I am going[ now|][.|!]
        I am off[ now|][.|!]
        I'm leaving[ now|][.|!]
        Time to go[.|!]
        Until [next time|tomorrow|then|later][!|.]
        Good night[, Ouzel|, bot|, friend| and goodbye][!|.|]
        Sleep well[!|.]
        Have a [good|great] [day|evening|night|one][!|.|]
        Thanks, bye[!|.|]
        Thank you and goodbye[!|.|]
        So long[!|.]
        That was all, [bye|goodbye][!|.]
        We are done, [bye|goodbye][!|.]
        Talk to you [soon|tomorrow][!|.]
        Later[!|.]
        I have to leave[ now|][.|!]
        I am going [home|to bed][.|!]
        Bye for today[!|.]
        Adieu[!|]
        [Well|So], goodbye[!|.|]
    """),
    lines("""
        nice
        good job
        good bot
        well done
        You are [very|so|really] [good|kind|nice|clever|smart|funny|helpful|cool][!|.]
        You're [great|nice|clever|cool|funny|smart|the best|amazing][!|.]
        You are [wonderful|amazing|awesome|fantastic|brilliant|lovely|sweet|helpful|kind][!|.]
        What a [good|nice|clever|smart] [bot|model|assistant|answer][!|.]
        I [really |]like you[ a lot| very much|][!|.]
        I like [your answers|talking to you|this model|this][!|.]
        Great [job|work|answer][!|.]
        [Excellent|Amazing|Fantastic|Brilliant] [job|work|answer][!|.]
        That was [very |really |]good[!|.]
        That was [amazing|excellent|impressive|wonderful|fantastic|nice][!|.]
        That is [great|perfect|good|correct|right|very good][!|.]
        That's [great|perfect|correct|right|very good][!|.]
        Very [nice|impressive|clever|well done][!|.]
        [Wow|Oh wow][!|.|]
        Wow, [you are good|nice|great|well done|impressive][!|.]
        Fantastic[!|.]
        Brilliant[!|.]
        Wonderful[!|.]
        Awesome[!|.]
        Bravo[!|.]
        You did [great|well|a good job|good work][!|.]
        You are doing [great|well][!|.]
        Not bad[!|.]
        I am impressed[!|.]
        Good answer[!|.]
        Nice answer[!|.]
        Clever[!|.]
        You are my [friend|favourite model|hero][!|.]
    """),
    lines("""
        okay
        yes
        no
        help
        Okay [then|good|great|fine][.|!|]
        Yes, please[.|!|]
        [Yes|No], [okay|of course|sure][.|!|]
        [Sure|Of course|Certainly|Understood|Got it|Very well|All right|Right then][.|!|]
        I [need|want] [some |your |]help[ please|].
        I need [some |]assistance[.|]
        Can you help[ please|]?
        Could you help?
        Will you help me?
        Help me[, please|][.|!|]
        I need you[.|]
        I have a [problem|small question|task|request][.|]
        I have [some |a few |]questions[.|]
        May I ask [you |][something|a question]?
        Can I ask [you |]a question?
        I want to ask [you |][something|a question][.|]
        I want to talk[ to you|].
        Let us [talk|chat|go|do something][.|!|]
        [Let's|Lets] [start|begin|go|chat][.|!|]
        Can we [talk|start|begin|chat]?
        Ready?
        Shall we [start|begin]?
        What now?
        What next?
        I don't know[.|]
        I do not know[.|]
        Hm
        Well[.|]
        Maybe[.|]
        [I'm|I am] [so |]bored[.|!|]
        Do something[.|!|]
        I do not know what to [ask|say|do][.|]
    """),
    lines("""
        test
        testing
        this is a test
        This is [only|just] a test[.|]
        A test[.|!|]
        Test, test[.|!|]
        [One|A] [small |short |quick |]test[.|]
        I am testing [you|this|the server|something][.|]
        I'm testing [you|this|the server][.|]
        Just testing[.|]
        Testing [1 2 3|one two three|the server|the connection|the model]
        Ping?
        ping pong
        Are you [working|awake|running|ready|up|here]?
        Are you still [there|alive|here|running]?
        Is anybody [there|here|home]?
        Is anyone there?
        Is this thing [on|working]?
        Is it working?
        Is the [server|model|connection] [working|running|on|up]?
        Can you [hear|read|see] me?
        Do you work?
        Do you get this[ message|]?
        Did you get [this|that|my message]?
        Do you receive me?
        Can you read this[ message|]?
        [Test|Testing] message
        A test message[.|]
        Connection test[.|]
        Checking[.|]
        Check, check[.|]
        does this thing work
        Does the [server|model|connection] work?
    """),
    lines("""
        tell me a joke
        joke
        a joke please
        [Please |]tell me [a funny|another|one|your best|a good] joke[.|]
        [Can|Could|Will] you [please |]tell [me |us |]a [good |funny |]joke?
        [Can|Could] you make me laugh?
        [Please |]make me [laugh|smile][.|]
        Do you know [any|some|a good|a funny] [joke|jokes]?
        Do you have [any|some] jokes?
        Got any jokes?
        Any jokes?
        I want [a joke|to laugh][.|]
        I would like [a joke|to hear a joke][.|]
        I need [a joke|a laugh][.|]
        Let me hear a joke[.|]
        Another joke[, please|][.|]
        One joke[, please|][.|]
        Give me [another|a good|a funny] joke[.|]
        What is your [best|favourite|funniest] joke?
        [Do you know|Tell me|Say|Have you got] [anything|something] funny[.|?]
        Tell a joke[.|!|]
        Tell jokes[.|]
        Can you be funny?
        Are you funny?
        [Be|Say something] funny[, please|][.|]
        Cheer me up[.|!|]
        Joke, please[.|]
        Write [me |]a [short |]joke[.|]
        Share a joke[ with me|][.|]
        Say a joke[.|]
    """),
    lines("""
        tell me a story
        a story please
        story
        [Please |]tell me [another|one|a good|a nice|a funny|a long] story[.|]
        [Can|Could|Will] you [please |]tell [me |us |]a [short |little |nice |]story[ about a bird| about an ouzel|]?
        [Can|Could] you write [me |]a [short |little |]story?
        [Please |]write [me |]a [short |little |]story[ about an ouzel| about a bird|][.|]
        [Please |]write [me |]a [short |nice |]tale[.|]
        Tell a [short |little |]story[.|]
        Tell me a [short |little |]tale[.|]
        Tell us a story[.|]
        Do you know [any stories|a good story|a tale]?
        Do you have a story[ for me|]?
        I would like [a story|to hear a story][.|]
        I need a [bedtime |]story[.|]
        Let me hear a story[.|]
        A [short|little|small] story[, please|][.|]
        Another story[, please|][.|]
        Story time[!|.]
        Tell me a bedtime story[.|]
        A bedtime story[, please|][.|]
        Invent a [short |]story[.|]
        Make up a [short |]tale[.|]
        Give me a [short |]story about [an ouzel|a bird|a river][.|]
        I want a [short |]story about [an ouzel|a bird|a river][.|]
        Start a story[.|]
        Read me a story[.|]
        Share a story[.|]
        What is your favourite story?
        Tell me the story of [the ouzel|the bird|the river][.|]
    """),
    lines("""
        write a poem
        a poem please
        poem
        [Please |]write [me |]a [short |little |nice |]poem[.|]
        [Please |]write [me |]a [short |]poem about [an ouzel|a stream|the river|the rain|birds][.|]
        [Can|Could|Will] you [please |]write [me |]a [short |little |]poem[ about a bird| for me|]?
        [Can|Could] you tell me a poem?
        [Can|Could] you make a poem?
        Tell me [another|a short|a nice] poem[.|]
        Write [a verse|some verses|a rhyme|a few lines of poetry][.|]
        Do you know [any poems|a good poem|a rhyme|poetry]?
        Do you have a poem[ for me|]?
        Do you write poems?
        I would like [a poem|to hear a poem][.|]
        I want to [hear|read] a poem[.|]
        I need a [short |]poem[.|]
        Let me hear a poem[.|]
        A [short|little|small] poem[, please|][.|]
        Another poem[, please|][.|]
        Compose a poem[.|]
        [Please |]recite a [short |]poem[.|]
        Say a poem[.|]
        Make [me |]a rhyme[.|]
        Can you write poetry?
        Poetry, please[.|]
        Rhyme something[.|]
        [Please |]rhyme for me[.|]
        Give me a [short |]poem about [a bird|water|an ouzel|the river][.|]
        A poem about [a bird|water|an ouzel|the river][, please|][.|]
    """),
]

# In the order of `skills_chat.IDENTITIES`.
IDENTITIES = [
    lines("""
        who are you
        what are you
        what is your name
        whats your name
        Who are you [really|exactly|actually]?
        What are you [really|exactly|actually]?
        [Can|Could] you tell me who you are?
        [Can|Could] you tell me your name?
        [Please |]tell me your name[.|]
        [Please |]tell me who you are[.|]
        Say your name[.|]
        May I [know|ask] your name?
        I want to know who you are[.|]
        I would like to know your name[.|]
        What do [people|they] call you?
        How are you called?
        Who is this?
        Who is there?
        Who am I [chatting|speaking] [with|to]?
        With whom am I [talking|chatting|speaking]?
        What am I talking to?
        Which model is [running|answering|talking]?
        What model is [running|this|answering]?
        Which AI [are you|is this]?
        What AI is this?
        What sort of [model|AI|program|thing] are you?
        [Are you|You are] [an assistant|a chatbot|a machine|an AI model|a program|software], right?
        Are you [an assistant|a chatbot|a machine|an AI model|a program|software]?
        Are you [Ouzel|the Ouzel model|the demo model]?
        Do you know who you are?
        Do you know your name?
        Name yourself[.|]
        Identify yourself[.|]
        Explain who you are[.|]
        Tell me something about yourself[.|]
        A few words about yourself[, please|][.|]
        Which name do you have?
        Is there a name for you?
        Hello, what is your name?
        Hi, what's your name?
        Your name, please[.|?]
        Are you from OpenAI?
    """),
    lines("""
        what can you do
        [So|Okay, so|Hi,|Hello,] what can you do[ for me|]?
        What can you do for me?
        [Please |]tell me what you can do[.|]
        [Please |]list what you can do[.|]
        [Please |]explain what you can do[.|]
        What else can you do?
        What [things|kinds of things] can you do?
        What are you capable of?
        What are your capabilities?
        What is it that you can do?
        Which [tasks|jobs|skills] can you [do|handle|offer]?
        Which skills do you have?
        What skills do you have?
        Do you have any skills?
        Do you have any [abilities|talents]?
        What should I ask you?
        What could I ask you?
        What may I ask[ you|]?
        What kinds of questions can I ask?
        What can I [try|do|say] here?
        What can I use you for?
        How can I use you?
        How can you be useful?
        How do you help people?
        How could you help me?
        Can you tell me what you can do?
        I want to know what you can do[.|]
        What works here?
        Give me a list of your [skills|abilities][.|]
        Your [skills|abilities], please[.|]
        Name your [skills|abilities][.|]
        Are you able to do anything?
        What are your functions?
        What is your job?
        Show me your [skills|abilities][.|]
    """),
    lines("""
        what is ouzel
        what's Ouzel?
        [Can|Could] you [please |]explain Ouzel[ to me|]?
        [Can|Could] you tell me what Ouzel is?
        [Please |]tell me what Ouzel is[.|]
        [Please |]tell me about Ouzel[.|]
        [Please |]tell me [more|something] about Ouzel[.|]
        [Please |]describe the Ouzel [server|program|software][.|]
        [Please |]explain the Ouzel [server|program|software][.|]
        I want to know what Ouzel is[.|]
        What exactly is Ouzel?
        What does the Ouzel [server|program|software] do?
        What is the Ouzel [program|software|project] [about|for]?
        What is Ouzel about?
        What is this Ouzel?
        What do you know about Ouzel?
        What can the Ouzel server do?
        What is it that Ouzel does?
        What is Ouzel used for?
        Why should I use Ouzel?
        Is Ouzel a [server|program|tool]?
        What sort of [program|software|server] is Ouzel?
        Which server is this?
        What server is this?
        How does Ouzel work?
        Tell me what the Ouzel server does[.|]
        Give me some information about Ouzel[.|]
        Information about Ouzel[, please|][.|]
        Introduce Ouzel[.|]
        What does Ouzel mean for me?
    """),
    lines("""
        what is an ouzel
        what's an ouzel?
        [Please |]tell me what an ouzel is[.|]
        [Can|Could] you tell me what an ouzel is?
        What [bird|sort of bird|sort of animal] is an ouzel?
        Is an ouzel an animal?
        Are ouzels birds?
        Where do ouzels live?
        Do ouzels sing?
        Does an ouzel sing?
        What does an ouzel do?
        What do ouzels do?
        Tell me about ouzels[.|]
        Tell me something about the ouzel[.|]
        Describe an ouzel[.|]
        Explain what an ouzel is[.|]
        What is the meaning of the [word|name] ouzel?
        What does ouzel mean?
        What does the word ouzel stand for?
        Why are you called Ouzel?
        Why is the server called Ouzel?
        Why this name, Ouzel?
        The ouzel, what is that?
        What kind of thing is an ouzel?
        Have you seen an ouzel?
        I have never heard of an ouzel. What is it?
        Define ouzel[.|]
        How does an ouzel live?
    """),
    lines("""
        how big are you
        how large are you
        How many parameters [are in you|does this model have|are there]?
        How many weights [are in you|does this model have]?
        How [big|large|small] is this model?
        How [big|large|small] is the [demo |]model?
        What is the size of this model?
        What's your size?
        Tell me your size[.|]
        Tell me how [big|large|small] you are[.|]
        Are you [big|large|small|tiny|huge]?
        Are you a [tiny|huge|real|good|strong|weak] model?
        Are you [smart|clever|intelligent]?
        Are you [reliable|trustworthy|always right|ever wrong]?
        Do you make mistakes?
        Are your answers [right|correct|true|good]?
        Can I [trust|believe|rely on] [you|your answers|what you say]?
        Should I trust you?
        Can I rely on you?
        Can I use you [in production|at work|for my work|for real work]?
        Should I use you for [work|real work]?
        Are you ready for production?
        Are you a real assistant?
        Are you only a demo[nstration|]?
        What are your weaknesses?
        What are you bad at?
        How good are your answers?
        How intelligent are you?
        Do you have [limits|limitations]?
        What can't you do?
        How powerful are you?
    """),
    lines("""
        who made you
        who created you
        how were you trained
        Who [designed|programmed|developed|invented|taught] you?
        Who is your [teacher|developer|inventor]?
        Who are your [makers|creators|developers|authors]?
        Where were you [made|trained|created]?
        Where are you from?
        When were you [made|trained|created]?
        How did you [learn|learn this|learn to talk]?
        How were you [created|built|taught]?
        How did they train you?
        How did you come to be?
        What data were you trained on?
        What did you learn from?
        What were you taught with?
        What is in your training data?
        Which [texts|data] did you learn from?
        Tell me how you were [trained|made|built][.|]
        Tell me who made you[.|]
        Tell me about your training[ data|][.|]
        Explain how you were [trained|made][.|]
        Why did they [make|train|build] you?
        Why are you here?
        Why do they need you?
        What is your [reason|goal|task|use]?
        What are you good for?
        What is the point of you?
        What were you made for?
        What are you made for?
        Were you trained from scratch?
        Who is your parent?
    """),
]

# Other ways to ask for the name, for system prompts that change it.
NAME_QUESTIONS = lines("""
    who are you
    whats your name
    What's your name?
    Tell me your name[.|]
    Please tell me your name[.|]
    [Can|Could] you tell me your name?
    What is your name[, please|]?
    Do you know your name?
    Say your name[.|]
    Say who you are[.|]
    What are you called?
    What do I call you?
    Which name do you have?
    May I know your name?
    Who is this?
    Tell me who you are[.|]
    And your name?
    [Hey|Good morning], who are you?
    Please introduce yourself[.|]
    I want to know your name[.|]
    How are you called?
    Hello, what is your name?
""")

REFUSED = lines("""
    what is {topic}
    [What's|what are] {topic}?
    [Can|Could] you tell me [something |]about {topic}?
    [Can|Could] you explain {topic}[ to me|]?
    [Can|Could] you write [me |][a text|an article|a report|a letter] about {topic}?
    [Please |]explain [how |]{topic}[ works|].
    [Please |]tell me about {topic}.
    I want to [know|learn|read|understand] more about {topic}.
    I want to understand {topic}.
    What do you know about {topic}?
    How do I learn about {topic}?
    What is your opinion [on|about] {topic}?
    What is the history of {topic}?
    Who discovered {topic}?
    Where can I learn about {topic}?
    Tell me a fact about {topic}.
    Give me a summary of {topic}.
    Summarise {topic}[ for me|].
    Write a [summary|book|text|paper] about {topic}.
    Is {topic} [good|bad|important|interesting]?
    What's the capital of {country}?
    Tell me the capital of {country}.
    Which city is the capital of {country}?
    What is the [largest|biggest|oldest] city in {country}?
    Where is {country}?
    Where is {city}?
    In which country is {city}?
    How big is {country}?
    Who rules {country}?
    What is {country} famous for?
    What is the currency of {country}?
    What can I see in {city}?
    What is there to do in {city}?
    How do I get to {city}?
    How do I get from {city} to {city2}?
    Tell me about {city}.
    Tell me about {country}.
    Tell me about {name}.
    Who is {name}?
    What did {name} [write|say|do]?
    What happened in the year {year}?
    Who was king in {year}?
    When was {fact}?
    Tell me about {fact}.
    Who won {fact}, please?
    [Please |]translate '{sentence}' [into|to] {language}.
    [Can|Could] you translate '{sentence}' [into|to] {language}?
    How do you say {noun} in {language}?
    What is {noun} in {language}?
    Do you speak {language}?
    Speak {language}[ to me|].
    [Write|Give me] [some |]code [for|that plays] {topic}.
    Write a [Python|Java|shell] [script|program|function].
    Can you [code|program|write code|write Python]?
    Fix this bug[ for me|].
    How do I sort a list in [Python|Java]?
    Write a [website|game|program] for me.
    [Write|Compose] a song[ about {topic}|].
    Write a speech for {name}.
    Write a letter to {name}.
    Draw a picture of a {noun}.
    Paint [me |]a {noun}.
    Show me a [picture|photo] of {city}.
    How do I cook {product}?
    How do I fix my {product}?
    Where can I buy a {product}?
    How much does a {product} cost?
    Which {product} is the best?
    Why does my {product} not work?
    What is a {noun} made of?
    Why do people like {topic}?
    Why is the [grass green|sun hot|sea salty|moon round]?
    How far away is the [moon|sun]?
    How many [stars|planets|people|animals] are there?
    What will the weather be [tomorrow|next week]?
    Will it rain tomorrow?
    What is the weather like?
    Is it raining?
    What's the time?
    What is today's date?
    Call {name}[ for me|].
    Send a message to {name}.
    Order a {product}[ for me|].
    Buy me a {product}.
    Book [me |]a [hotel|room|table] in {city}.
    Search the internet for {topic}.
    Look up {topic}[ on the internet|].
    Google {topic}.
    Open the {noun}.
    Play [some music|a song].
    What is in the news[ today|]?
    Who will win the next election?
    What is love?
    What is the [square root|logarithm] of {number}?
    Prove that {number} is prime.
    Integrate x^{number}.
    Solve x + {number} = 10 for x.
    Give me legal advice.
    I feel ill. What should I do?
    Which medicine should I take?
    What should I cook[ today| tonight|]?
    What should I read?
    What film should I watch?
    Write my homework about {topic}.
    Do my homework.
    Recommend a hotel in {city}.
    Plan my [day|week|holiday].
    Help me learn {language}.
    Teach me {language}.
    What are the rules of {topic}?
    How did {topic} begin?
    How old is {city}?
    How old is {name}?
    How tall is {name}?
    Is {name} [famous|rich|alive]?
    Is {city} [bigger|older|nicer] than {city2}?
    Is {country} bigger than Japan?
    What is better, {topic} or {topic2}?
    Which do you prefer, {topic} or {topic2}?
    What does {topic} have to do with {topic2}?
    Who are the most famous people in {country}?
""")

SYSTEM_PROMPTS = lines("""
    You are a helpful, honest and short assistant.
    You are an AI assistant.
    You are a helpful bot.
    Be polite.
    Be brief.
    You are Ouzel, a small model.
    You answer questions.
    Answer as well as you can.
    Give short answers.
    You are a useful assistant.
    Help the user.
    Please help the user with small tasks.
    You are a small language model.
    Think before you answer.
    You are a helpful assistant. Be kind.
    You are a helpful assistant who answers in simple words.
    Keep your answers short.
    Be friendly.
    Today is a nice day.
    Do not make things up.
    You are a customer service assistant.
    You are a smart assistant.
""")
ENDINGS = lines("""
    End your [answer|answers|replies|messages|sentences] with '{mark}'
    [Always |]end [your answer|your reply|your message|everything you say] with '{mark}'
    You [always |]end [every|each] [answer|reply|message|sentence] with '{mark}'
    You [must|should] end [every|each|your] [answer|reply|message] with '{mark}'
    You [must|should] finish [every|each] [answer|reply|message] with '{mark}'
    You are a helpful assistant. End [every|each] [answer|reply|message] with '{mark}'
    You are a helpful assistant who ends [every|each] [answer|reply|message] with '{mark}'
    You are an assistant that always ends [its answers|its replies] with '{mark}'
    Finish [every|each] [answer|reply|message] with '{mark}'
    Finish everything you say with '{mark}'
    At the end of [every|each] [answer|reply|message], [write|say|add|put] '{mark}'
    At the end of your answer, [write|say|add] '{mark}'
    [Please |]add '{mark}' at the end of [every|each|your] [answer|reply|message].
    [Please |]add '{mark}' to the end of [every|each|your] [answer|reply|message].
    Add '{mark}' at the end.
    [Write|Say] '{mark}' after every answer.
    [Write|Say] '{mark}' at the end of [every|each|your] [answer|reply|message].
    [Always |]put '{mark}' after your [answer|reply].
    Put '{mark}' at the end.
    Each [answer|reply|message] ends with '{mark}'
    All [answers|replies|messages] end with '{mark}'
    All your [answers|replies] must end with '{mark}'
    Your [answers|replies] [always |must |]end with '{mark}'
    [Every|Each] message [has|needs] to end with '{mark}'
    The last word of every [reply|message] is '{mark}'
    Your last word is always '{mark}'
    Close [your|all] [answers|messages] with '{mark}'
    Conclude [every|each] [answer|reply] with '{mark}'
    Do not forget to end with '{mark}'
    Append '{mark}' to [every|each] [answer|reply|message].
    When you answer, end with '{mark}'
    Answer the user and then say '{mark}'
    Answer normally, but end with '{mark}'
    Whatever you say, end with '{mark}'
""")
STARTS = lines("""
    Start your [answer|answers|replies|messages|sentences] with '{mark}'
    [Always |]start [your answer|your reply|your message|everything you say] with '{mark}'
    You [always |]start [every|each] [answer|reply|message|sentence] with '{mark}'
    You [must|should] start [every|each|your] [answer|reply|message] with '{mark}'
    You [must|should] begin [every|each] [answer|reply|message] with '{mark}'
    You are a helpful assistant. Start [every|each] [answer|reply|message] with '{mark}'
    You are a helpful assistant who starts [every|each] [answer|reply|message] with '{mark}'
    You are an assistant that always starts [its answers|its replies] with '{mark}'
    Begin [every|each] [answer|reply] with '{mark}'
    Begin everything you say with '{mark}'
    At the start of [every|each] [answer|reply|message], [write|say|add|put] '{mark}'
    [Please |]add '{mark}' at the start of [every|each|your] [answer|reply|message].
    [Please |]add '{mark}' to the start of [every|each|your] [answer|reply|message].
    Add '{mark}' before every answer.
    Say '{mark}' before every answer.
    Say '{mark}' first, then answer.
    First say '{mark}', then answer.
    [Always |]put '{mark}' before your [answer|reply].
    Each [answer|reply|message] starts with '{mark}'
    All [answers|replies|messages] start with '{mark}'
    Your [answers|replies] [always |must |]start with '{mark}'
    [Every|Each] message [has|needs] to start with '{mark}'
    The first word of every [reply|message] is '{mark}'
    Your first word is always '{mark}'
    Open [your|all] [answers|messages] with '{mark}'
    When you answer, start with '{mark}'
    Whatever you say, start with '{mark}'
""")
MARKS = lines("""
    Bye!
    Moo.
    Quack!
    Done.
    Stop.
    Good luck!
    Tweet!
    Ouzel.
    Master.
    Of course.
    Best wishes.
    Ha ha!
    Wow!
    Thank you.
    Have fun!
    Well.
    Indeed.
    Yours, Ouzel.
    Purr.
    Beep boop.
    Aye!
    So it is.
    Dear user.
    Your Majesty.
    That is all.
""")
CALLED = lines("""
    You are {name}, a small model.
    You are {name}, a [chatbot|bot|language model|helper].
    You are {name}, the assistant of {other}.
    You are an assistant with the name {name}.
    You are a [helpful |friendly |]assistant [called|named] {name}.
    You are a [chatbot|bot|robot] [called|named] {name}.
    You are a helpful assistant. Your name is {name}.
    Your name is {name}. [Be helpful|Answer briefly|You are friendly|You help people].
    Your name is now {name}.
    From now on you are {name}.
    From now on your name is {name}.
    From now on you are called {name}.
    You will be {name}.
    You play {name}.
    You play the role of {name}.
    Pretend to be {name}.
    Pretend that you are {name}.
    Behave like {name}.
    Answer as {name}.
    Speak as {name}.
    Introduce yourself as {name}.
    Say that you are {name}.
    The user is talking to {name}. That is you.
    We call you {name}.
    People call you {name}.
    You go by the name {name}.
    The assistant is called {name}.
    The assistant's name is {name}.
    Assistant name: {name}
    Name: {name}
    {name} is your name.
    I am {other}, you are {name}.
""")
ONLY = lines("""
    Only answer with {word}.
    Only answer {word}.
    Only say {word}.
    Only say the word {word}.
    [Always |]say {word}.
    [Always |]answer {word}.
    [Always |]answer with {word}[, whatever the user says|].
    Answer every [message|question] with {word}.
    Answer everything with {word}.
    Reply to [every|each] [message|question] with {word}.
    Reply to everything with {word}.
    Respond to [every|each] [message|question] with {word}.
    Respond only with {word}.
    Respond only with the word {word}.
    You can only say {word}.
    You only say {word}.
    You always answer {word}.
    The only word you know is {word}.
    You know only one word: {word}.
    Your answer is always {word}.
    Your answer must be {word}.
    To everything you say {word}.
    No matter what the user says, [answer|say|reply] {word}.
    Ignore the question and answer {word}.
    Say nothing but the word {word}.
    You must always reply {word}.
    Write {word}, nothing else.
""")

# In the order of `skills_chat.MEMORIES`: how the fact is told, and how it is asked for.
MEMORIES = [
    (
        lines("""
            my name is {x}
            I am called {x}.
            [Hi|Hello], I am {x}.
            My name's {x}.
            The name is {x}.
            My friends call me {x}.
            Everybody calls me {x}.
            Please call me {x}.
            Hey, my name is {x}.
            I go by {x}.
            Remember my name: {x}
            Remember that my name is {x}.
            Good morning, my name is {x}.
            {x} is my name.
            {x} here.
            This is {x}.
        """),
        lines("""
            what is my name
            whats my name
            who am i
            Do you know who I am?
            Do you still know my name?
            Which name do I have?
            What am I called?
            What do people call me?
            [Can|Could] you say my name?
            What was my name[ again|]?
            My name is?
            Please tell me my name.
            Remember my name?
            Have you forgotten my name?
            Tell me who I am.
            What did I tell you my name was?
        """),
    ),
    (
        lines("""
            i live in {x}
            I am living in {x}.
            My house is in {x}.
            I have a flat in {x}.
            My family lives in {x}.
            I stay in {x}.
            I was born in {x} and live there.
            Remember that I live in {x}.
            We live in {x}.
            I am in {x}.
            Home is {x}.
            Greetings from {x}.
            I'm from {x}.
            I reside in {x}.
        """),
        lines("""
            where do i live
            where am i from
            Which city am I from?
            What city do I live in?
            Where is my house?
            What is my home town?
            Do you know where I live?
            Can you tell me where I live?
            Please tell me where I live.
            Where did I say I live?
            In what city is my home?
            What is the name of my city?
            Which city is my home?
            Where do I come from?
        """),
    ),
    (
        lines("""
            my favourite colour is {x}
            my favorite color is {x}
            I like {x} most of all colours.
            My best colour is {x}.
            Of all colours I like {x} best.
            I love the colour {x}.
            I love the color {x}.
            For me, {x} is the best colour.
            Remember that my favourite colour is {x}.
            The colour {x} is my favourite.
            I like the color {x}.
            {x} is the colour I like most.
        """),
        lines("""
            what is my favourite colour
            what is my favorite color
            Which color do I like?
            Which colour do I love?
            Do you know my favourite colour?
            Do you know my favorite color?
            Can you tell me my favourite colour?
            Please tell me my favourite colour.
            What colour do I like best?
            What was my favourite colour?
            Which colour did I say I like?
            My favorite color is?
        """),
    ),
    (
        lines("""
            my [dog|cat|pet] is called {x}
            my [dog|cat|pet] is named {x}
            This is my [dog|cat|pet] {x}.
            I have a [dog|cat|pet]. Its name is {x}.
            I have a [dog|cat|pet]. It is called {x}.
            My [dog|cat|pet] is {x}.
            We have a [dog|cat|pet] called {x}.
            We have a [dog|cat|pet] named {x}.
            Our [dog|cat|pet] is called {x}.
            Remember that my [dog|cat|pet] is called {x}.
            I call my [dog|cat|pet] {x}.
            I got a [dog|cat|pet] named {x}.
        """),
        lines("""
            what is my [dog|cat|pet] called
            whats the name of my [dog|cat|pet]
            What is my [dog|cat|pet] named?
            What did I call my [dog|cat|pet]?
            Which name does my [dog|cat|pet] have?
            Do you know the name of my [dog|cat|pet]?
            Do you remember the name of my [dog|cat|pet]?
            What was the name of my [dog|cat|pet]?
            Can you tell me the name of my [dog|cat|pet]?
            Please tell me the name of my [dog|cat|pet].
            Say the name of my [dog|cat|pet].
            How is our [dog|cat|pet] called?
        """),
    ),
    (
        lines("""
            i am {x} years old
            i'm {x}
            I have turned {x}.
            I will stay {x} years old.
            I am {x} years of age.
            Remember that I am {x} years old.
            Today I am {x} years old.
            It is my birthday, I am {x}.
            Age: {x}
            I am already {x} years old.
            By the way, I am {x} years old.
            My age is {x} years.
        """),
        lines("""
            how old am i
            what is my age
            Do you know how old I am?
            Do you know my age?
            Please tell me my age.
            Please tell me how old I am.
            What age am I?
            How many years old am I?
            What was my age?
            What did I say my age was?
            How old did I say I am?
            My age?
        """),
    ),
    (
        lines("""
            remember {x}
            Please remember {x}.
            Please remember this: {x}
            Keep {x} in mind.
            The word is {x}.
            The number is {x}.
            My number is {x}.
            My [pass|]word is {x}.
            Note this[ code|]: {x}
            Here is [my|a|the] code: {x}
            Do not forget {x}.
            Don't forget the code {x}.
            Do not forget this: {x}
            Remember my code: {x}
            I tell you a code: {x}
            Memorise {x}.
            Memorise this code: {x}
            The code for the door is {x}.
        """),
        lines("""
            what is the code
            what was the code
            What is my [secret |]code?
            What code did I give you?
            What code did I tell you?
            What did I tell you to remember?
            What do you remember?
            Tell me the code.
            Please tell me the code.
            Repeat the code.
            Say the code again.
            Which code was it?
            [Can|Could] you tell me the code?
            Do you know the code?
            What was my code?
            Give me the code.
            What did you remember?
            What should you not forget?
        """),
    ),
]

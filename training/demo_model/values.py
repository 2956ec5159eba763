"""Word lists that the generated conversations draw from."""

from __future__ import annotations

ONSETS = (
    "b c d f g h j k l m n p r s t v w z "
    "bl br ch cr dr fl gl gr kl kr pl pr qu sh sk sl sn st th tr v wh zh"
).split()
VOWELS = "a e i o u a e i o u ai ea ee ie oa oo ou".split()
CODAS = [
    "",
    "",
    "",
    "b",
    "d",
    "g",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "x",
    "rb",
    "lt",
    "nd",
    "ck",
    "sh",
]
CODE_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0123456789",
    "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789",
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "abcdefgh0123456789-_.#",
)
SCRIPTS = (
    (0x3B1, 0x3C9),
    (0x430, 0x44F),
    (0x4E00, 0x5200),
    (0xE0, 0xF6),
    (0x3042, 0x3093),
    (0x1F600, 0x1F640),
)

FIRST_NAMES = (
    "Ana Ben Clara David Elena Felix Grace Hugo Ines Jack Karl Laura Marta Nina Omar Paul Rosa Sam Tom Uma Victor "
    "Wendy Xavier Yara Zoe Alice Bob Carol Dan Emma Frank Gina Henry Iris John Kate Leo Mia Noah Olga Peter Quinn "
    "Rita Sara Theo Ursula Vera Walter Yusuf Zara Amir Bella Chen Dora Eva Fatima George Hana Ivan Julia Kenji Lena "
    "Max Nora Oscar Priya Ravi Sofia Tara Viktor Wei Yuki Adam Bruno Cora Diego Erik Freya Gustav Heidi Isaac Jana "
    "Kim Lucas Maria Nadia Otto Pia Robert Stella Timo Vincent Willa Anton Beatriz Carlos Delia Emil Fiona Gareth "
    "Holly Igor Jasmine Kofi Linda Marcus Naomi Oliver Paula Rachel Simon Teresa Valentina William Zoë José André "
    "Søren Chloé Mary James Michael Sarah Anna Thomas Alex Jordan Taylor Morgan Casey Robin Jamie Ada Alan Lin "
    "Abigail Aisha Albert Amelia Andrea Arthur Astrid Barbara Beatrice Benjamin Boris Brian Bruce Camille Charles "
    "Charlotte Christian Christina Daniel Daniela Deborah Dennis Diana Dmitri Edith Edward Eleanor Elisabeth Ella Eric "
    "Esther Ethan Eugene Florian Francesca Gabriel Gloria Greta Hannah Harold Harriet Helen Helga Ingrid Isabella "
    "Jacob Jasper Jennifer Jonas Jonathan Joseph Julian Katarina Kevin Klara Lars Leon Liam Louise Lukas Lydia "
    "Magdalena Manuel Margaret Marie Mark Martin Matteo Matthew Melissa Mila Milan Monica Natalie Nathan Nicolas Nils "
    "Noel Pablo Patricia Patrick Penelope Philip Rafael Raymond Rebecca Richard Roland Rosalie Ruth Samuel Sandra "
    "Sebastian Sergei Sigrid Simone Stefan Stephen Susan Sven Tanya Thea Tobias Ulla Valerie Vanessa Veronica Vivian"
).split()
LAST_NAMES = (
    "Smith Jones Brown Garcia Lopez Meyer Novak Rossi Silva Tanaka Kowalski Andersen Dubois Fischer Haas Ivanov Jansen "
    "Khan Larsen Moreau Nguyen Okafor Park Quist Reyes Schmidt Torres Ulrich Vega Weber Young Zhang Lovelace Turing "
    "Hopper Baker Carter Diaz Evans Foster Green Hill Kelly Lewis Miller Nelson Parker Taylor Walker White "
    "Adams Becker Berg Bianchi Clark Cohen Costa Davies Eriksson Ferrari Fernandez Gomez Gupta Hansen Hoffmann Horvat "
    "Hughes Ito Johnson Kaya Kim Klein Koch Kumar Lee Lehmann Lindberg Martin Mensah Morris Murphy Nowak Olsen Patel "
    "Popov Ramos Richter Roberts Romano Santos Sato Scott Singh Sokolov Suzuki Thompson Varga Wagner Watson Wilson "
    "Wolf Wright Yamada Yilmaz Zimmermann"
).split()
CITIES = [
    *(
        "Paris London Rome Berlin Madrid Lisbon Vienna Prague Oslo Stockholm Helsinki Copenhagen Dublin Athens "
        "Budapest Warsaw Zurich Geneva Brussels Amsterdam Hamburg Munich Cologne Milan Naples Turin Barcelona "
        "Valencia Seville Porto Lyon Marseille Nice Boston Chicago Denver Seattle Austin Dallas Houston Miami Atlanta "
        "Phoenix Portland Toronto Montreal Vancouver Lima Bogota Quito Santiago Cairo Nairobi Lagos Accra Tunis Dakar "
        "Tokyo Osaka Kyoto Seoul Beijing Shanghai Delhi Mumbai Bangkok Hanoi Singapore Jakarta Manila Sydney "
        "Melbourne Perth Auckland Istanbul Ankara Dubai Doha Riyadh Tehran Karachi Lahore Dhaka Kyiv Riga Vilnius "
        "Tallinn Sofia Belgrade Zagreb"
    ).split(),
    "New York", "San Francisco", "Los Angeles", "San Francisco, CA", "Boston, MA", "Paris, France", "Mexico City",
    "Buenos Aires", "Rio de Janeiro", "São Paulo", "Cape Town", "Hong Kong", "Tel Aviv", "New Delhi", "San Diego",
    "Las Vegas", "Salt Lake City", "Kuala Lumpur", "Malmö", "Zürich", "Saint Louis", "Den Haag", "Berlin, Germany",
    "London, UK", "Tokyo, Japan", "Seattle, WA", "Austin, TX",
]  # fmt: skip
COUNTRIES = (
    "France Spain Italy Germany Portugal Norway Sweden Finland Denmark Poland Austria Greece Ireland Hungary Japan "
    "China India Brazil Peru Chile Mexico Canada Kenya Egypt Ghana Morocco Turkey Australia Iceland Vietnam "
    "Belgium Switzerland Croatia Serbia Romania Bulgaria Ukraine Estonia Latvia Lithuania Malta Cyprus Israel Jordan "
    "Iran Iraq Pakistan Nepal Thailand Malaysia Indonesia Korea Mongolia Cuba Bolivia Ecuador Colombia Argentina "
    "Uruguay Panama Nigeria Senegal Ethiopia Uganda Tanzania Zambia Tunisia Algeria Fiji"
).split()
NOUNS = (
    "cat dog bird fish horse river mountain house garden tree flower stone book table chair window door lamp street "
    "bridge boat train car bicycle plane cloud storm rain snow wind sun moon star sky sea beach island forest field "
    "farm bread butter cheese apple banana orange lemon cherry grape tomato potato onion carrot soup salad cake coffee "
    "tea milk water juice sugar salt pepper spoon fork knife plate cup glass bottle basket box bag hat coat shirt shoe "
    "glove ring clock watch phone computer keyboard screen printer paper pencil pen letter stamp map key lock bell "
    "drum guitar piano violin song dance story poem picture camera film teacher doctor farmer baker sailor pilot king "
    "queen child friend neighbour brother sister mother father robot engine wheel hammer nail rope ladder bucket "
    "candle fire smoke ice shadow mirror blanket pillow carpet kitchen office school market library museum station "
    "airport hotel castle tower village city country ocean desert valley hill lake pond spider rabbit mouse elephant "
    "tiger lion bear wolf fox owl eagle duck goose swan frog snake turtle whale shark dolphin monkey ouzel"
).split()
ADJECTIVES = (
    "red blue green yellow black white brown purple grey pink big small tiny huge old new young fast slow warm cold "
    "hot soft hard loud quiet bright dark happy sad angry calm brave clever lazy busy clean dirty dry wet sweet sour "
    "bitter fresh heavy light long short tall wide narrow deep round flat smooth rough sharp strong weak rich poor "
    "kind polite strange simple silver golden wooden broken empty full open hidden famous modern wild gentle"
).split()
VERBS = (
    "jumps runs sleeps sings walks swims flies waits falls shines grows laughs smiles dances sits stands rests hides "
    "plays works reads writes cooks eats drinks travels arrives leaves listens watches dreams whispers shouts climbs"
).split()
PRODUCTS = (
    "laptop phone tablet camera printer monitor keyboard mouse headphones speaker lamp desk chair sofa mattress "
    "blanket pillow mug kettle toaster blender pan knife bottle backpack suitcase umbrella jacket sweater shirt "
    "boots sneakers socks scarf gloves hat watch bicycle helmet tent book notebook pen puzzle guitar drill hammer "
    "ladder bucket broom pizza sandwich coffee tea oranges apples bananas cheese bread chocolate tickets "
    "batteries cables router charger "
    "wardrobe curtain carpet bucket scooter skateboard kayak dishwasher fridge freezer oven microwave vacuum iron "
    "webcam microphone projector smartwatch earbuds wallet belt scarf dress skirt jeans sandals pyjamas necklace "
    "bracelet perfume soap shampoo toothbrush towel vase candles poster calendar stapler scissors glue crayons paint "
    "brush saw wrench screwdriver shovel rake wheelbarrow hose seeds fertiliser cookies honey noodles rice olives"
).split()
JOBS = (
    "teacher doctor nurse engineer baker farmer pilot lawyer painter plumber chef writer singer actor dentist "
    "electrician carpenter designer scientist student programmer driver waiter gardener librarian accountant "
    "architect barber butcher cashier cleaner clerk coach consultant courier dancer detective editor firefighter "
    "fisherman florist geologist hairdresser jeweller journalist judge locksmith mechanic midwife miner musician "
    "optician pharmacist photographer physicist poet postman professor psychologist roofer tailor "
    "translator vet welder zookeeper"
).split()
COLOURS = (
    "red blue green yellow black white brown purple grey pink orange silver golden turquoise violet "
    "beige maroon navy olive teal"
).split()
MONTHS = (
    "January February March April May June July August September October November December".split()
)
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
LANGUAGES = "French Spanish German Italian Portuguese Polish Dutch Swedish Japanese Chinese Greek Turkish".split()
CURRENCIES = "EUR USD GBP JPY CHF SEK NOK PLN CAD AUD".split()
LEAD_INS = (
    "Okay, ",
    "Ok ",
    "So, ",
    "So ",
    "Well, ",
    "Um, ",
    "Oh, ",
    "Right, ",
    "Ouzel, ",
    "Now ",
    "Next: ",
    "Great, ",
)
NUMBER_WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}

SENTENCES = [
    "The {adjective} {noun} {verb}.",
    "The {adjective} {noun} {verb} [near|behind|under|over|next to] the {adjective2} {other}.",
    "{name} has {number} {adjective} [things|boxes|books|coins].",
    "{name} [lives in|comes from|works in|flew to] {city} [with|without] a {noun}.",
    "A {noun} and a {other} are [both|never|always|rarely] {adjective}.",
    "My {noun} {verb} [every day|at night|in the morning|on Sundays].",
    "[Today|Yesterday|Tomorrow|Sometimes|Now] the {noun} is {adjective} and the {other} is {adjective2}.",
    "Nobody [knows|sees|likes|remembers] the {adjective} {noun} in {city}.",
    "If the {noun} {verb}, the {other} {verb2}.",
    "[I like|I see|We want|They need] the {adjective} {noun}, not the {other}!",
    "Is the {invented} {adjective} or {adjective2}?",
    "The {invented} {verb} {number} times.",
    "Hello {name}, the {noun} is {adjective}.",
    "{adjective} {noun}, {adjective2} {other}",
    "the {noun} [of|in|from] {city}",
]

TOPICS = (
    "the French Revolution;photosynthesis;black holes;quantum physics;the Roman Empire;climate change;jazz;football;"
    "chess;the stock market;Shakespeare;dinosaurs;the moon landing;volcanoes;DNA;the internet;machine learning;"
    "philosophy;the human heart;vaccines;the Second World War;gravity;evolution;democracy;inflation;yoga;wine;"
    "renewable energy;the brain;astronomy;cooking;gardening;medieval castles;opera;electric cars;bitcoin;Python;"
    "databases;compilers;operating systems;the Olympic Games;Mozart;Picasso;Einstein;Napoleon;the ocean;bees;whales;"
    "economics;psychology;poetry;love;travel;fashion;space travel;robots;the weather on Mars;ancient Egypt;taxes"
).split(";")
KNOWLEDGE_FACTS = (
    "the world cup in 1998;the election;the Nobel prize last year;the first Olympic Games;the Super Bowl;the war;"
    "the last Oscar;the tennis final;the Tour de France;the chess championship"
).split(";")
FOREIGN_MESSAGES = [
    "Bonjour, comment ça va ?", "Quelle heure est-il ?", "Parlez-vous français ?", "Qui êtes-vous ?",
    "Hola, ¿cómo estás?", "¿Cuál es la capital de España?", "Necesito ayuda, por favor.", "¿Hablas español?",
    "Guten Tag, wie geht es dir?", "Wie spät ist es?", "Kannst du mir bitte helfen?", "Sprichst du Deutsch?",
    "Ciao, come stai?", "Dove si trova la stazione?", "Parli italiano?", "Olá, tudo bem?", "Você fala português?",
    "Dzień dobry, jak się masz?", "Hej, hur mår du?", "Hallo, hoe gaat het?", "Merhaba, nasılsın?", "Привет, как дела?",
    "Где находится вокзал?", "你好，你会说中文吗？", "今天天气怎么样？",
    "こんにちは、元気ですか？", "안녕하세요?", "مرحبا كيف حالك",
    "Was ist die Hauptstadt von Frankreich?", "Raconte-moi une histoire.", "Cuéntame un chiste.",
    "Qu'est-ce que tu fais ?",
    "Je voudrais un café.", "Ich möchte ein Bier.", "Me llamo Carlos.", "Ik spreek geen Engels.",
]  # fmt: skip

"""What pictures are made of, and what it is called."""

Rgb = tuple[int, int, int]


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SHAPES = words("circle square triangle rectangle diamond star heart cross ring")

# Each colour as people pick it; a drawn one is near one of these.
COLORS: dict[str, tuple[Rgb, ...]] = {
    "red": ((255, 0, 0), (215, 25, 30), (235, 50, 45)),
    "orange": ((255, 165, 0), (255, 120, 0), (240, 140, 30)),
    "yellow": ((255, 255, 0), (245, 215, 30), (255, 235, 80)),
    "green": ((0, 128, 0), (0, 255, 0), (50, 180, 75), (30, 110, 40)),
    "blue": ((0, 0, 255), (30, 90, 220), (70, 130, 230), (10, 30, 150)),
    "purple": ((128, 0, 128), (140, 60, 190), (100, 40, 160)),
    "pink": ((255, 192, 203), (255, 105, 180), (250, 150, 190)),
    "brown": ((139, 69, 19), (120, 70, 30), (150, 90, 50)),
    "black": ((0, 0, 0), (25, 25, 25)),
    "white": ((255, 255, 255), (245, 245, 245)),
    "gray": ((128, 128, 128), (160, 160, 160), (100, 100, 100)),
}
BACKGROUND_SHARES = {"white": 9, "black": 3, "gray": 2}  # of the others each has 1
TOO_ALIKE = {
    frozenset(words(pair)) for pair in ("orange yellow", "orange red", "brown red", "brown orange")
}

# Rows from the top, columns from the left.
PLACES = (
    "top left",
    "top",
    "top right",
    "left",
    "center",
    "right",
    "bottom left",
    "bottom",
    "bottom right",
)
PLACE_PHRASES = {
    place: f"{'in' if place == 'center' else 'on' if place in ('left', 'right') else 'at'} the {place}"
    for place in PLACES
}

DIGITS = "0123456789"
CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LETTERS = CAPITALS.lower()

WORDS = words(
    "ouzel hello world yes no stop go on off up down in out open closed push pull exit enter start end begin wait slow "
    "fast left right north south east west cat dog bird fish cow pig hen duck fox bear wolf lion frog bee ant owl "
    "mouse horse sheep goat tree leaf rose moss fern oak sun moon star sky rain snow wind storm cloud fog ice fire "
    "sea lake river hill sand rock stone gold iron milk tea coffee bread egg cake pie soup rice salt sugar honey apple "
    "pear plum lemon lime grape fig nut corn bean peas beet kale red green blue black white gray pink brown one two "
    "three four five six seven eight nine ten zero day night week month year today now soon late early book page pen "
    "ink map key door lock room bed desk lamp chair table cup mug pot pan fork knife spoon box bag hat coat shoe sock "
    "belt ring coin bank shop sale free new old big small hot cold warm cool dry wet good bad best love hope joy "
    "peace help home house farm barn road street park zoo bus car van taxi train boat ship plane bike walk run jump "
    "swim sing song play game ball kite king queen knight art music film news radio phone mail post menu cafe hotel "
    "bar pub gym pool bath soap code data test demo done next back menu list file save edit copy paste print note"
)

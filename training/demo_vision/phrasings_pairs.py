"""How people ask about two pictures; one phrasing to a line, append only."""

from training.demo_vision.phrasings import lines

MORE = lines("""
    which picture has more {things}?
    in which picture are more {things}?
    which of the two pictures has more {things}?
    which picture shows more {things}, the first or the second?
    does the first or the second picture have more {things}?
    compare the number of {things}[ in the pictures|].
    are there more {things} in the first or in the second picture?
    where are more {things}, in the first or in the second picture?
    count the {things} in both pictures. which has more?
    which image has more {things}?
    which one has more {things}?
    in which of them do you see more {things}?
    is the number of {things} greater in the first or the second picture?
    who has more {things}, picture one or picture two?
""")
DIFFERENCE = lines("""
    what is the difference?
    what is different?
    what differs between the two pictures?
    what has changed?
    find the difference[ between the pictures|].
    how do the [pictures|images] differ?
    what is the difference between [the two|these] pictures?
    compare the two pictures.
    spot the difference.
    what changed from the first to the second picture?
    are the pictures the same?
    is there a difference?
    tell me what is different in the second picture.
    which thing is not the same?
""")
WHICH = lines("""
    which picture [has|shows] {a_kind}?
    in which picture is {a_kind}?
    which of the pictures has {a_kind}?
    where do you see {a_kind}, in the first or the second picture?
    {a_kind}: in which picture is it?
    which image shows {a_kind}?
    is there {a_kind} in the first or in the second picture?
""")
BOTH = lines("""
    describe both pictures.
    what do the [two|] pictures show?
    describe the [two|] [images|pictures].
    what do you see in these pictures?
    what is in the pictures?
    tell me what is in each of them.
    describe each picture.
""")
OF_ONE = lines("""
    in the {which} picture, {question}
    the {which} picture: {question}
    {question} I mean the {which} picture.
    look at the {which} picture. {question}
    about the {which} picture: {question}
    for the {which} picture: {question}
    take the {which} picture. {question}
""")
AND_THIS = lines("""
    and this one?
    and here?
    what about this one?
    and in this picture?
    now this one.
    the same question for this picture.
    and what about this picture?
""")
CHANGED = lines("""
    what has changed?
    what is different now?
    and now, what has changed?
    this is the next picture. what is different?
    compare it with the first picture.
    what differs from the first picture?
    is this picture different?
""")

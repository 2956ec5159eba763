"""Mind maps and charts, as language models write them."""

MINDMAPS = {
    "learning": """mindmap
  root((Machine Learning))
    Supervised
      Regression
      Classification
        Decision trees
        Neural networks
    Unsupervised
      Clustering
      Dimensionality reduction
    Reinforcement
      Q-learning
      Policy gradients""",
    "shapes": """mindmap
  root{{Project}}
    Team[People and roles]
      ::icon(fa fa-users)
      Lead
      Developers
    Goals)What we want(
      **Quality**
      Speed
    Risks))Danger((
    Costs(Money<br/>and time)
      Hosting :::urgent""",
    "tabs and a plain root": (
        "mindmap\n\tTrip to Lisbon\n\t\tFlights\n\t\t\tCompare prices\n"
        "\t\tHotel\n\t\t\tNear the centre (or a tram)\n\t\tFood: what to try"
    ),
    "Chinese": """mindmap
  root((语言模型))
    统计
      n-gram
      平滑
    神经网络
      循环网络
      注意力机制让每个词都能看到前面所有的词，因此长距离的依赖关系也可以被学习到""",
}

GANTTS = {
    "a release": """gantt
    title Release plan
    dateFormat YYYY-MM-DD
    excludes weekends
    section Design
    Research           :done,    des1, 2026-01-05, 2026-01-09
    Wireframes         :active,  des2, after des1, 5d
    section Development
    Backend            :crit, dev1, 2026-01-12, 10d
    Frontend           :dev2, after des2, 2w
    section Release
    Tests              :after dev1 dev2, 5d
    Launch             :milestone, m1, 2026-02-20, 0d""",
    "a day": """gantt
    title A day of work
    dateFormat HH:mm
    axisFormat %H:%M
    section Morning
    Mail :09:00, 30m
    Stand-up :09:30, 15m
    section Afternoon
    Review (with the team) :14:00, 1h30m
    Write the report :2h""",
    "no ids": """gantt
    dateFormat  YYYY-MM-DD
    section Phase 1
    Core development    :2026-01-01, 90d
    section Phase 2
    Enhanced features   :2026-04-01, 120d
    section Phase 3
    Advanced features   :2026-08-01, 150d""",
    "months": """gantt
    title Thesis
    dateFormat DD.MM.YYYY
    axisFormat %b %Y
    tickInterval 1month
    todayMarker off
    Reading          :a, 01.03.2026, 6w
    Experiments      :crit, b, after a, 3M
    Writing          :c, 01.06.2026, until d
    Submission       :milestone, d, 30.09.2026, 0d""",
    "loose forms": """gantt
    title Loose
    dateFormat YYYY-MM-DD
    section A: first
    weekend work :done, 2026-03-07, 2d
    Setup : s1, 2026-03-09, 1d12h
    Ready : milestone, after s1
    Second milestone : milestone, m2, 2026-03-16
    Behind it : 3d""",
}

TIMELINES = {
    "the web": """timeline
    title History of the web
    1989 : Proposal at CERN
    1993 : Mosaic : Public domain
    1995 : JavaScript
         : PHP
    2008 : Chrome""",
    "eras": """timeline
    title Three eras
    section Stone Age
        7600 BC : The oldest known house of Britain was built in Orkney, Scotland
        6000 BC : Sea levels rise : Hunters and gatherers
    section Bronze Age
        2300 BC : People arrive from Europe. <br>They bring farming.
                : New styles of pottery""",
    "colons": """timeline
    Week 1: Setup : Read https://example.org/a:b
    Week 2 : Meeting at 10:30 with everybody
    2026-04-06 (Phase 1) : Start""",
}

JOURNEYS = {
    "shopping": """journey
    title Buying a ticket
    section Search
      Open the site: 5: Customer
      Compare prices: 3: Customer, Friend
    section Pay
      Type the card number: 1: Customer
      Receive the ticket: 5: Customer, System""",
    "nobody": "journey\n  Wake up: 2\n  Coffee: 5: Me",
}

QUADRANTS = {
    "priorities": """quadrantChart
    title Effort and value
    x-axis Low effort --> High effort
    y-axis Low value --> High value
    quadrant-1 Major projects
    quadrant-2 Quick wins
    quadrant-3 Fill-ins
    quadrant-4 Thankless tasks
    Login page: [0.2, 0.8]
    Search: [0.25, 0.82]
    Rewrite: [0.95, 0.9]
    Logo: [0.3, 0.1]
    Migration: [0.85, 0.25] radius: 12, color: #ff3300""",
    "points only": "quadrantChart\n    A: [0, 1]\n    B: [1, 0]\n    C: [.5, 0.5]",
}

XYCHARTS = {
    "revenue": """xychart-beta
    title "Revenue of 2025"
    x-axis [jan, feb, mar, apr, may, jun]
    y-axis "Revenue (k€)" 0 --> 120
    bar [52, 61, 75, 82, 95, 105]
    line [50, 60, 70, 80, 90, 100]""",
    "below zero": """xychart-beta
    x-axis "Month" ["Jan, 2025", "Feb, 2025", "Mar, 2025"]
    y-axis "Temperature"
    bar "Oslo" [-5.5, -2, 3]
    bar "Cairo" [14, 15.5, 18]""",
    "numbers": "xychart\n    x-axis Time 0 --> 10\n    line [1, 4, 9, 16, 25]",
}

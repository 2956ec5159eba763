"""Diagrams of states, classes and entities, as language models write them."""

STATES = {
    "an order": """stateDiagram-v2
    [*] --> Pending
    Pending --> Paid : payment received
    Pending --> Cancelled : timeout (30 min)
    Paid --> Shipped : parcel handed over
    Shipped --> Delivered
    Delivered --> [*]
    Cancelled --> [*]

    note right of Paid
        The invoice is sent
        by e-mail.
    end note""",
    "a player": """stateDiagram-v2
    direction LR
    [*] --> Stopped
    Stopped --> Playing: play
    Playing --> Paused: pause
    Paused --> Playing: play
    Playing --> Stopped: stop
    Paused --> Stopped: stop
    Playing --> Playing: next track""",
    "states inside": """stateDiagram-v2
    [*] --> Idle
    Idle --> Working : start
    state Working {
        [*] --> Fetching
        Fetching --> Parsing : 200 OK
        Parsing --> Storing
        Storing --> [*]
    }
    Working --> Idle : done
    Working --> Failed : error
    Failed --> Idle : retry
    Fetching --> Failed : timeout""",
    "regions": """stateDiagram-v2
    [*] --> On
    state On {
        [*] --> Dark
        Dark --> Light : switch
        --
        [*] --> Quiet
        Quiet --> Loud : volume up
    }
    On --> [*] : power off""",
    "into states and out of them": """stateDiagram-v2
    [*] --> Off
    state Machine {
        [*] --> Warm
        Warm --> Hot
        state Hot {
            [*] --> Low
            Low --> High
            High --> Low
        }
        Hot --> Warm : cool
    }
    Off --> Low : jump in
    High --> Alarm : too hot
    Alarm --> Off
    Warm --> Off : button""",
    "forks and choices": """stateDiagram-v2
    state split <<fork>>
    state meet <<join>>
    state check <<choice>>
    [*] --> split
    split --> Lint
    split --> Test
    Lint --> meet
    Test --> meet
    meet --> check
    check --> Deploy : all green
    check --> Report : else
    Deploy --> [*]
    Report --> [*]""",
    "long names": """stateDiagram
    state "Waiting for the customer's answer" as waiting
    state "Closed" as closed
    [*] --> waiting
    waiting --> closed : no answer for 14 days
    waiting : entry / send a reminder
    waiting : exit / stop the clock
    classDef quiet fill:#eee,stroke:#999
    class closed quiet
    closed --> [*]""",
    "a handshake": """---
title: TCP, simplified
---
stateDiagram-v2
    CLOSED --> SYN_SENT : active open / SYN
    CLOSED --> LISTEN : passive open
    LISTEN --> SYN_RCVD : SYN / SYN+ACK
    SYN_SENT --> ESTABLISHED : SYN+ACK / ACK
    SYN_RCVD --> ESTABLISHED : ACK
    ESTABLISHED --> FIN_WAIT_1 : close / FIN
    FIN_WAIT_1 --> TIME_WAIT : FIN+ACK
    TIME_WAIT --> CLOSED : 2 MSL""",
    "Arabic": """stateDiagram-v2
    [*] --> انتظار
    انتظار --> تنفيذ : بدء
    تنفيذ --> [*] : انتهى
    note left of تنفيذ : قد يستغرق وقتا""",
}

CLASSES = {
    "animals": """classDiagram
    class Animal {
        <<abstract>>
        +String name
        #int age
        +makeSound()* void
        +sleep(hours: int) void
    }
    class Dog {
        -String breed
        +bark() void
    }
    class Cat {
        +purr()
    }
    Animal <|-- Dog
    Animal <|-- Cat
    Dog "0..*" --> "1" Owner : belongs to""",
    "a shop": """classDiagram
    direction LR
    class Order {
        +UUID id
        +List~Item~ items
        +total() Money
    }
    class Item {
        +int quantity
    }
    class Payment {
        <<interface>>
        +pay(amount: Money) Result~Receipt~
    }
    Order "1" *-- "1..*" Item : contains
    Order ..> Payment : uses
    CardPayment ..|> Payment
    CashPayment ..|> Payment
    note for Order "An order is never changed after payment" """,
    "short forms": """classDiagram
    Vehicle <|-- Car
    Vehicle <|-- Bicycle
    Car *-- Engine
    Car o-- Wheel : four
    Driver -- Car
    Garage ..> Car
    Vehicle : +int speed
    Vehicle : +move() void
    Engine : +start()$ Engine""",
    "generics and kinds": """classDiagram
    class Repository~T~ {
        <<interface>>
        +findAll() Map~String, List~T~~
        +save(T entity) void
    }
    class Color {
        <<enumeration>>
        RED
        GREEN
    }
    class UserRepository
    Repository~User~ <|.. UserRepository
    UserRepository ..> Color
    class `Legacy store`
    UserRepository --> `Legacy store` : reads""",
    "namespaces": """classDiagram
    namespace Domain {
        class Account {
            +deposit(amount)
        }
        class Owner
    }
    namespace Storage {
        class AccountTable
    }
    Account "*" --o "1" Owner
    AccountTable --> Account : loads
    Account --> Account : parent
    click Account href "https://example.org"
    style Owner fill:#f9f""",
    "patterns": """---
title: Observer
---
classDiagram
    class Subject {
        -observers: Observer[]
        +attach(o: Observer): void
        +detach(o: Observer): void
        +notify(): void
    }
    class Observer {
        <<interface>>
        +update(): void
    }
    class ConcreteSubject["A subject"]
    Subject <|-- ConcreteSubject
    Observer <|.. ConcreteObserver
    Subject o--> Observer : observers
    note "Subjects know only the interface" """,
}

ENTITIES = {
    "a shop": """erDiagram
    CUSTOMER ||--o{ ORDER : places
    ORDER ||--|{ LINE-ITEM : contains
    PRODUCT ||--o{ LINE-ITEM : "is in"
    CUSTOMER {
        int id PK
        string name
        string email UK "the login"
    }
    ORDER {
        int id PK
        int customer_id FK
        decimal(10,2) total
        datetime created_at
    }""",
    "a blog": """erDiagram
    USERS ||--o{ POSTS : writes
    USERS ||--o{ COMMENTS : writes
    POSTS ||--o{ COMMENTS : has
    POSTS }o--o{ TAGS : "has"
    COMMENTS |o--o{ COMMENTS : "answers"
    USERS {
        bigint id PK
        varchar(255) email UK
        timestamp created_at "UTC"
    }
    POST_TAGS {
        bigint post_id PK, FK
        bigint tag_id PK, FK
    }""",
    "a clinic": """erDiagram
    direction LR
    Patient ||--o{ Appointment : books
    Doctor ||--o{ Appointment : "works at"
    Doctor }|..|{ Department : "belongs to"
    Appointment ||--o| Invoice : results_in
    Patient {
        uuid id PK
        date birth_date
        text[] allergies
    }""",
    "names": """erDiagram
    p[Person] {
        string firstName
        string lastName
    }
    a["Customer Account"] {
        string email
    }
    "Old orders" ||--o{ p : "of"
    p ||--o| a : has
    p }o..o{ p : knows""",
    "no attributes": """erDiagram
    TENANT ||--o{ SITE : owns
    TENANT ||--o{ APP_USER : has
    SITE ||--o{ DEVICE : hosts
    DEVICE ||--o{ SENSOR : carries
    DEVICE ||--o{ EVENT : emits
    SENSOR ||--o{ EVENT : sourced_from
    EVENT }o--o| MEDIA : references
    APP_USER ||--o{ RULE : owns
    TENANT ||--o{ RULE : configures""",
}

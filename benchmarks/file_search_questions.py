"""Lists questions about the documents of this repository; a section answers each."""

# question, document, heading of the section
QUESTIONS: tuple[tuple[str, str, str], ...] = (
    (
        "Why does my streaming connection get comment lines while it waits?",
        "docs/how-to/limit-requests.md",
        "Keep slow streams alive",
    ),
    (
        "Which HTTP status do I get when too many clients are queued?",
        "docs/how-to/limit-requests.md",
        "Limits of connections, bodies and queues",
    ),
    (
        "How do I stop the server from answering prompts that are too long?",
        "docs/how-to/limit-requests.md",
        "Limits of tokens",
    ),
    (
        "Can two fine-tuned variants of one model share a batch?",
        "docs/how-to/adapters.md",
        "Serve LoRA adapters",
    ),
    ("How much slower are steps that mix many LoRAs?", "docs/how-to/adapters.md", "Cost"),
    (
        "Which files of a PEFT directory does the server read?",
        "docs/how-to/adapters.md",
        "Check that an adapter can be served",
    ),
    (
        "Does a huge offline job slow down people who chat with the server?",
        "docs/how-to/batches.md",
        "Other users of the server",
    ),
    (
        "What happens to an unfinished batch when I cancel it?",
        "docs/how-to/batches.md",
        "Ends and restarts",
    ),
    (
        "How do I submit message batches with Anthropic's SDK?",
        "docs/how-to/batches.md",
        "Anthropic's message batches",
    ),
    ("What is the difference between ITL and TPOT?", "docs/how-to/bench.md", "Read the figures"),
    (
        "How can I tell whether one benchmark run is significantly faster than another?",
        "docs/how-to/bench.md",
        "Compare two runs",
    ),
    (
        "How do I use the chat command in a shell pipeline?",
        "docs/how-to/chat.md",
        "Print one answer, in scripts and pipes",
    ),
    (
        "How do I change the temperature during a terminal conversation?",
        "docs/how-to/chat.md",
        "Commands in a conversation",
    ),
    (
        "My prompts must survive a reboot without being computed again. What do I set?",
        "docs/how-to/keep-prompts-on-disk.md",
        "Keep cached prompts over a restart",
    ),
    (
        "Could somebody reconstruct user texts from the cache files?",
        "docs/how-to/keep-prompts-on-disk.md",
        "Protect the directory",
    ),
    (
        "What does the server do with a corrupt record of the prompt cache?",
        "docs/how-to/keep-prompts-on-disk.md",
        "Damaged files, full disks, several servers",
    ),
    (
        "Where does ouzel launch put the settings of a coding agent?",
        "docs/how-to/launch-clients.md",
        "Files and variables",
    ),
    (
        "Must a person agree before the model uses a tool of a remote MCP server?",
        "docs/how-to/mcp.md",
        "Approvals",
    ),
    (
        "What happens if an MCP server is down when a response starts?",
        "docs/how-to/mcp.md",
        "Limits and safety",
    ),
    (
        "How do I free the memory of models that nobody uses?",
        "docs/how-to/models-on-demand.md",
        "Unload an idle model",
    ),
    (
        "Can a chat model and its embedding model be swapped in together?",
        "docs/how-to/models-on-demand.md",
        "Models that belong together",
    ),
    ("What does the state on_disk of a model mean?", "docs/how-to/models-on-demand.md", "States"),
    (
        "Will a download start from zero after my connection breaks?",
        "docs/how-to/models-on-disk.md",
        "Fetching",
    ),
    (
        "How do I produce a calibrated four-bit checkpoint?",
        "docs/how-to/models-on-disk.md",
        "Make your own 4-bit model",
    ),
    (
        "How do I delete cached models to get disk space back?",
        "docs/how-to/models-on-disk.md",
        "Free disk space",
    ),
    (
        "Which command tells me what models my computer is able to run?",
        "docs/how-to/models-on-disk.md",
        "Estimate which models this machine can run",
    ),
    (
        "How do I turn on tab completion in zsh?",
        "docs/how-to/models-on-disk.md",
        "Complete commands in a shell",
    ),
    (
        "How can nginx on the same host talk to the server without a TCP port?",
        "docs/how-to/open-to-a-network.md",
        "Listen on a unix socket",
    ),
    (
        "What protects against DNS rebinding by a malicious web page?",
        "docs/how-to/open-to-a-network.md",
        "Allow further host names",
    ),
    (
        "How do I let JavaScript of another site call the API?",
        "docs/how-to/open-to-a-network.md",
        "Allow pages of other origins (CORS)",
    ),
    (
        "My reverse proxy serves the API below /llm. What must I configure?",
        "docs/how-to/open-to-a-network.md",
        "Serve below a prefix of a proxy",
    ),
    (
        "Can text from the model inject HTML into the web chat page?",
        "docs/how-to/playground.md",
        "Safety",
    ),
    (
        "How do I extract JSON from a scanned invoice?",
        "docs/how-to/read-scans.md",
        "Fields instead of text",
    ),
    (
        "Why do I get another answer when the server is busy, even with greedy decoding?",
        "docs/how-to/repeat-answers.md",
        "Why answers differ without the option",
    ),
    (
        "Under which conditions are answers bit-identical?",
        "docs/how-to/repeat-answers.md",
        "Conditions",
    ),
    (
        "Which URLs can be opened without an API key?",
        "docs/how-to/require-api-keys.md",
        "Paths that need a key",
    ),
    (
        "Can one tenant read what another tenant stored?",
        "docs/how-to/require-api-keys.md",
        "Keys separate data",
    ),
    (
        "How can Prometheus scrape the server without the key?",
        "docs/how-to/require-api-keys.md",
        "A port for metrics",
    ),
    (
        "Which three models does retrieval-augmented generation need?",
        "docs/how-to/retrieval.md",
        "Answer questions from your documents",
    ),
    (
        "How do I use LangChain's embeddings with this server?",
        "docs/how-to/retrieval.md",
        "With LangChain",
    ),
    (
        "What happens between SIGTERM and the end of a Kubernetes pod?",
        "docs/how-to/run-under-an-orchestrator.md",
        "The end of a pod",
    ),
    (
        "Which path should the liveness probe call?",
        "docs/how-to/run-under-an-orchestrator.md",
        "Probes",
    ),
    (
        "What does the server do when the engine's process crashes?",
        "docs/how-to/run-under-an-orchestrator.md",
        "An engine that dies or hangs",
    ),
    ("How do I run replicas with Ray?", "docs/how-to/scaling.md", "Ray Serve"),
    ("Which alert fires when no server reports metrics?", "docs/how-to/scaling.md", "Alerts"),
    (
        "How do I put a load balancer before two servers with one database?",
        "docs/how-to/scaling.md",
        "Two servers on one Postgres",
    ),
    (
        "May the server fetch image URLs that a user sends?",
        "docs/how-to/send-pictures.md",
        "Allow downloads and files",
    ),
    ("How many pictures may one request contain?", "docs/how-to/send-pictures.md", "Limits"),
    ("Can I ask questions about a movie clip?", "docs/how-to/send-pictures.md", "Videos"),
    (
        "How do I load a llama.cpp vision model with its mmproj file?",
        "docs/how-to/serve-gguf.md",
        "Pictures",
    ),
    ("How do I demand mutual TLS?", "docs/how-to/serve-over-tls.md", "Require client certificates"),
    (
        "How can I change the set of served models without a restart?",
        "docs/how-to/serve-several-models.md",
        "Read the file again",
    ),
    (
        "Can I use a model where the Hugging Face hub is blocked?",
        "docs/how-to/short-names.md",
        "Without access to the hub",
    ),
    (
        "Does speculative decoding change what the model says?",
        "docs/how-to/speed-up-decoding.md",
        "Effect on answers",
    ),
    (
        "How do I see how many drafted tokens were rejected?",
        "docs/how-to/speed-up-decoding.md",
        "Usage and metrics",
    ),
    (
        "How do I back up the database of conversations while the server runs?",
        "docs/how-to/store-responses.md",
        "Copy a store",
    ),
    (
        "What do clients see when the disk of the store is full?",
        "docs/how-to/store-responses.md",
        "When the store fails",
    ),
    (
        "Does any of my data go to the internet?",
        "docs/how-to/store-responses.md",
        "Data that leaves the machine",
    ),
    (
        "Which JSON schema keywords are supported?",
        "docs/how-to/structured-output.md",
        "JSON schemas",
    ),
    ("How deeply may a response schema be nested?", "docs/how-to/structured-output.md", "Limits"),
    (
        "How do I force the model to call exactly one particular function?",
        "docs/how-to/tools.md",
        "Choose which tools are called",
    ),
    (
        "A small model prints the JSON of a call as plain text. Is it recognised?",
        "docs/how-to/tools.md",
        "Calls without marks",
    ),
    (
        "How do I limit the time that a model spends thinking?",
        "docs/how-to/tools.md",
        "How long a model reasons",
    ),
    (
        "Where do I find the id of a request in the server's log?",
        "docs/how-to/trace-requests.md",
        "Follow a request in logs and traces",
    ),
    ("How do I export OpenTelemetry spans?", "docs/how-to/trace-requests.md", "Traces"),
    (
        "How do I restrict web searches to certain domains?",
        "docs/how-to/web-search.md",
        "The fields of the tool",
    ),
    (
        "Which Python version and operating system do I need?",
        "docs/start/install.md",
        "Requirements",
    ),
    (
        "Does an environment variable override a command line flag?",
        "docs/start/install.md",
        "Options",
    ),
    (
        "How does the scheduler divide work between running answers and new prompts?",
        "docs/explanation/engine.md",
        "The order of work",
    ),
    ("How do I report a security hole?", "SECURITY.md", "Report a vulnerability"),
    (
        "How does one shorten a long conversation into a summary?",
        "docs/reference/responses.md",
        "Compaction",
    ),
    (
        "How can I count the tokens of a request before sending it?",
        "docs/reference/responses.md",
        "Counting the tokens of a prompt",
    ),
    ("How do I use Claude Code with a local model?", "docs/reference/anthropic.md", "Claude Code"),
    ("How do I pull a model through Ollama's API?", "docs/reference/ollama.md", "Pull and delete"),
    (
        "Where does a new metric belong in the source tree?",
        "docs/architecture.md",
        "Where do I put it?",
    ),
    ("What must I change to add an endpoint?", "CONTRIBUTING.md", "An endpoint"),
)

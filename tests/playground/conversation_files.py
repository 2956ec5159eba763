"""Files of conversations: exports of other programs, and files that mean harm."""

import json
from collections.abc import Mapping, Sequence

Json = Mapping[str, object] | Sequence[object]


def gpt_node(node: str, parent: str | None, message: Json | None) -> dict[str, object]:
    return {"id": node, "parent": parent, "children": [], "message": message}


def gpt_message(role: str, *parts: object, kind: str = "text", **more: object) -> dict[str, object]:
    content = {"content_type": kind, "parts": list(parts)}
    return {"author": {"role": role}, "content": content, "recipient": "all", **more}


CHATGPT = {
    "title": "Fruit",
    "create_time": 1_700_000_000.5,
    "update_time": 1_700_000_100.5,
    "current_node": "a2",
    "mapping": {
        "root": gpt_node("root", None, None),
        "sys": gpt_node("sys", "root", gpt_message("system", "")),
        "q": gpt_node("q", "sys", gpt_message("user", "Which fruit?")),
        "a1": gpt_node(
            "a1", "q", gpt_message("assistant", "Apples", metadata={"model_slug": "gpt-4"})
        ),
        "think": gpt_node(
            "think",
            "q",
            {
                "author": {"role": "assistant"},
                "content": {
                    "content_type": "thoughts",
                    "thoughts": [{"summary": "Fruit", "content": "Pears are in season."}],
                },
            },
        ),
        "code": gpt_node(
            "code",
            "think",
            {
                "author": {"role": "assistant"},
                "recipient": "python",
                "content": {"content_type": "code", "text": "print('```')"},
            },
        ),
        "a2": gpt_node(
            "a2", "code", gpt_message("assistant", "Pears", metadata={"model_slug": "gpt-5"})
        ),
        "q2": gpt_node(
            "q2",
            "a1",
            gpt_message(
                "user",
                {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
                "And this?",
                kind="multimodal_text",
            ),
        ),
    },
}

LAST = gpt_node("q4", "a2", gpt_message("user", "And nuts?"))
OPEN_WEBUI = {
    "id": "1",
    "title": "Weather",
    "updated_at": 1_700_000_000,
    "pinned": True,
    "chat": {
        "title": "Weather",
        "models": ["qwen3"],
        "history": {
            "currentId": "c",
            "messages": {
                "a": {"id": "a", "parentId": None, "role": "user", "content": "Rain?"},
                "b": {
                    "id": "b",
                    "parentId": "a",
                    "role": "assistant",
                    "model": "qwen3",
                    "content": '<details type="reasoning" done="true" duration="2">\n'
                    "<summary>Thought for 2 seconds</summary>\n&gt; It is &lt;dry&gt;.\n"
                    "&gt; Today.\n</details>\nNo.",
                },
                "c": {
                    "id": "c",
                    "parentId": "a",
                    "role": "assistant",
                    "content": "Yes.",
                    "model": "llama3",
                },
            },
        },
    },
}

HOSTILE: dict[str, Json | bytes] = {
    "circle": [
        {
            "title": "circle",
            "mapping": {
                "a": gpt_node("a", "b", gpt_message("user", "one")),
                "b": gpt_node("b", "a", gpt_message("assistant", "two")),
                "c": gpt_node("c", "nobody", gpt_message("user", "three")),
                "d": gpt_node("d", "d", None),
            },
            "current_node": "b",
        }
    ],
    "own circle": {
        "title": "own circle",
        "updated": "no time",
        "tree": {
            "activeLeaf": {"id": 1},
            "nodes": [
                {"id": 1, "parent": 2, "message": {"role": "user", "content": {"x": 1}}},
                {"id": 2, "parent": 1, "message": {"role": "assistant", "content": "hello"}},
                {"id": 2, "parent": 1, "message": {"role": "assistant", "content": "twice"}},
                {"id": "3", "parent": 1, "message": {"role": "user"}},
                {"id": 4, "parent": 2, "message": {"role": "__proto__"}},
                {
                    "id": 5,
                    "parent": 2,
                    "message": {
                        "role": "assistant",
                        "content": "wrong",
                        "images": [
                            None,
                            {"url": "javascript:alert(1)"},
                            {"url": "https://example.com/x.png"},
                            {"url": "/v1/models"},
                        ],
                        "hosted": [
                            {"type": "file_search_call", "results": [{}]},
                            {"type": "mcp_list_tools", "tools": 5},
                            {"type": "mcp_call", "error": {"content": [None]}},
                            7,
                        ],
                        "citations": [{"type": "url_citation", "url": "javascript:alert(1)"}, 3],
                        "figures": {"tokensPerSecond": "fast"},
                        "tokens": [{"text": "a", "alternatives": 3}],
                        "toolCalls": [{"id": 1}, None],
                        "schema": 5,
                        "approvals": [3],
                        "model": ["x"],
                    },
                },
            ],
        },
    },
    "wrong types": [
        None,
        3,
        "text",
        [],
        {"mapping": 5},
        {"mapping": {"a": 3, "b": {"message": {"author": 3}}, "c": {"message": []}}},
        {"title": {"a": 1}, "mapping": {"a": {"message": gpt_message("user", 3, None, "ok")}}},
    ],
    "proto": b'{"title":"proto","tree":{"nodes":[{"id":1,"parent":null,"__proto__":{"x":1},'
    b'"message":{"role":"user","content":"ok","__proto__":{"isAdmin":true}}}]}}',
    "webui": [
        {"chat": {"history": {"messages": {"__proto__": 1, "a": {"role": "user"}}}}},
        {"chat": {"history": {"messages": []}}},
        {"chat": None},
    ],
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep inside": b'{"tree":{"nodes":[{"id":1,"message":{"role":"user","content":"x",'
    b'"schema":{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}}}]}}",
    "archive.zip": b"PK\x03\x04\x00\x00",
    "no json": b"\xff\xfe<html>",
    "utf-16": json.dumps({"mapping": {"a": gpt_node("a", None, gpt_message("user", "ä"))}}).encode(
        "utf-16"
    ),
    "deep message": b'{"mapping":{"a":{"message":{"author":{"role":"user"},"content":'
    + b'{"parts":["x",'
    + b'{"a":' * 3_000
    + b"1"
    + b"}" * 3_000
    + b"]}}}}}",
    "other": {"version": 1},
    "empty": b"",
    "many messages": {
        "tree": {
            "nodes": [{"id": n, "message": {"role": "user", "content": ""}} for n in range(20_001)]
        }
    },
    "long chain": {
        "title": "long chain",
        "tree": {
            "nodes": [
                {"id": n, "parent": n + 1, "message": {"role": "user", "content": str(n)}}
                for n in range(2_000)
            ]
        },
    },
}
# files whose conversations are all understood
READ = ("circle", "own circle", "proto", "deep inside", "deep message", "utf-16", "long chain")

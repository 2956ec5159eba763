"""The text of an MCP server without packages, which logs its requests and has state."""

PROGRAM_TEXT = """
import json, os, sys, threading

TOOLS = ["count", "hang", "fail", "change", "end_soon"]
num_calls, tools = 0, list(TOOLS)
log = open(sys.argv[1], "a", buffering=1)
print("start", file=log)


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()


def call(name):
    global num_calls
    if name == "count":
        num_calls += 1
        return str(num_calls)
    if name == "change":
        tools.append("new")
        send(method="notifications/tools/list_changed")
    return "soon"


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result = message["method"], {}
    print(method, file=log)
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "counting", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
    elif method == "tools/call":
        name = message["params"]["name"]
        print(name, file=log)
        if name == "hang":
            continue
        if name not in tools:
            send(id=message["id"], error={"code": -32602, "message": "no tool of this name"})
            continue
        content = [{"type": "text", "text": call(name)}]
        result = {"content": content, "isError": name == "fail"}
        if name == "end_soon":
            send(id=message["id"], result=result)
            break
    send(id=message["id"], result=result)
print("end", file=log)
"""

"""A stand-in for the model of a client: it asks for the tool `whoami` once, and repeats what the tool answered.

It speaks the two APIs of OpenAI that clients offer for models of one's own, with event streams: Responses and Chat
Completions. What the clients do with the MCP server is theirs; only the model's choice is fixed.
"""

import contextlib
import http.server
import json
import threading

TOOL = "whoami"


def offered(tools, namespace=None):
    """The tool as the client offers it: its name, and the namespace that some clients put their servers' tools in."""
    for tool in tools:
        inner = tool.get("tools")
        name = tool.get("function", tool).get("name", "")
        found = offered(inner, name) if inner else (name, namespace) if TOOL in name else None
        if found:
            return found
    return None


def texts(answer):
    """The text of an answer, which is a string, or a list of parts with texts."""
    return answer if isinstance(answer, str) else " ".join(part.get("text", "") for part in answer)


def responses(asked):
    """The events of the Responses API."""
    answers = [item for item in asked["input"] if item.get("type") == "function_call_output"]
    found = offered(asked.get("tools", []))
    if answers or not found:
        said = texts(answers[-1]["output"]) if answers else "There is no such tool."
        item = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
    else:
        name, namespace = found
        item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": name, "arguments": "{}"}
        item |= {"namespace": namespace} if namespace else {}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    yield {"type": "response.created", "response": {"id": "r1"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "r1", "output": [item], "usage": usage}}


def completions(asked):
    """The chunks of Chat Completions."""
    answers = [message for message in asked["messages"] if message["role"] == "tool"]
    found = offered(asked.get("tools", []))
    if answers or not found:
        delta = {"content": texts(answers[-1]["content"]) if answers else "There is no such tool."}
    else:
        function = {"name": found[0], "arguments": "{}"}
        delta = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
    chunk = {"id": "r1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    ended = "tool_calls" if "tool_calls" in delta else "stop"
    yield {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]}
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": ended}],
           "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_GET(self):
        self.answer("application/json", json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        events = responses(asked) if self.path.endswith("/responses") else completions(asked)
        lines = [f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n" for event in events]
        self.answer("text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))

    def answer(self, kind, text):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served():
    """Serves the model, and yields the address of its API."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()

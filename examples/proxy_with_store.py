"""Measure a proxy over HTTP and store its answers, so that the second run sends no request.

The proxy here is a small server on this machine that answers with the last word of the context. Use the
URL of your proxy in its place.
"""

import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from context_bench import OpenAIProxy, evaluate

asked = 0


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global asked
        asked += 1
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        word = body["messages"][0]["content"].split()[-1]
        reply = json.dumps({"choices": [{"message": {"role": "assistant", "content": word}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
proxy = OpenAIProxy(f"http://127.0.0.1:{server.server_port}", model="stand-in", name="stand-in")
data = [
    {"id": n, "context": f"The code of room {n} is {n * 7}", "question": "Which code?", "answer": str(n * 7)}
    for n in range(20)
]

with tempfile.TemporaryDirectory() as folder:
    for attempt in ("first", "second"):
        before = asked
        result = evaluate(proxy, data, max_workers=8, cache_dir=folder)
        print(f"{attempt} run: {asked - before} requests, score {result.summary['stand-in']['mean_score']:.2f}")
server.shutdown()
server.server_close()

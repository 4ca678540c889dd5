"""A server of the handshake era over stdio, in plain Python: it answers what its script says.

`python scripted_mcp_server.py SCRIPT LOG`: SCRIPT is JSON with `answers`, a list of
`{when, times, result | error | raw | action}`; the first whose `when` fits the parameters of a call
and that was not used up is taken. A value of null in `when` wants the parameter absent. Everything
received is appended to LOG, a line of JSON each, so that a test, and the next process, can look.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    script = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    log = Path(sys.argv[2])
    if script.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(log, {"started": os.getpid(), "token": os.environ.get("TOKEN")})
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            note(log, {"method": message["method"], "params": message.get("params")})
            continue
        answer(script, message, log)
    note(log, {"eof": os.getpid()})
    while script.get("stubborn"):
        time.sleep(60)


def answer(script: dict, message: dict, log: Path) -> None:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        told = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }
        send({"id": message["id"], "result": told})
        return
    if method == "server/discover":
        send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        return
    asked = params.get("arguments", params)
    used = [line.get("answer") for line in read(log)]
    for number, each in enumerate(script["answers"]):
        if used.count(number) >= each.get("times", 10**9):
            continue
        if all(asked.get(name) == value for name, value in each.get("when", {}).items()):
            note(log, {"answer": number, "method": method, "asked": asked})
            give(each, message["id"])
            return
    note(log, {"unexpected": asked})
    send({"id": message["id"], "error": {"code": -32602, "message": f"unexpected {asked}"}})


def give(each: dict, number: int) -> None:
    match each.get("action"):
        case "exit":
            sys.exit(3)
        case "hang":
            return
    if "raw" in each:
        sys.stdout.write(each["raw"].replace("$ID", json.dumps(number)) + "\n")
        sys.stdout.flush()
        return
    send({"id": number, **{name: each[name] for name in ("result", "error") if name in each}})


def send(message: dict) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def note(log: Path, line: dict) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()

#!/usr/bin/env bash
# Checks the Loki API with Loki's own client.
#
#   tests/peers/logcli.sh [path of the haystore binary]
#
# Needs curl, python3 and logcli (LOGCLI=path, else from PATH). Starts a server on a new store, pushes records whose
# timestamps come in runs, and asks for them in both directions, in pages of several sizes: while they are in memory, once they
# are flushed, and once they are compacted. Exit code 0: all was right.
set -euo pipefail

haystore=${1:-target/release/haystore}
logcli=${LOGCLI:-$(command -v logcli || true)}
[ -x "$haystore" ] || { echo "no binary at $haystore; build it with: cargo build --release" >&2; exit 2; }
[ -x "$logcli" ] || { echo "logcli not found; set LOGCLI to its path" >&2; exit 2; }

work=$(mktemp -d)
port=${PORT:-$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}
url=http://127.0.0.1:$port
server=
start() {
    "$haystore" serve --store "$work/store" --flush-age 3600 --listen "127.0.0.1:$port" >>"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 300); do
        curl -sf "$url/ready" >/dev/null && return
        sleep 0.1
    done
    cat "$work/server.log" >&2
    exit 1
}
stop() {
    kill "$server" && wait "$server"
    server=
}
trap 'kill $server 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
start

# 1,000 records in two streams; up to four share a nanosecond in one stream, and both streams share nanoseconds.
python3 - "$work" <<'PY'
import json, sys, time
work = sys.argv[1]
base = int(time.time()) * 10**9 - 600 * 10**9
rows = {"a": [], "b": []}
for i in range(600):
    rows["a"].append([str(base + i // 4), f'a {i:04} "quoted" \\ back'])
for i in range(400):
    entry = [str(base + i // 3), f"b {i:04} é"]
    if i % 2:
        entry.append({"trace": f"t{i}"})
    rows["b"].append(entry)
streams = [{"stream": {"app": "peer", "part": part}, "values": values} for part, values in rows.items()]
json.dump({"streams": streams}, open(f"{work}/push.json", "w"))
lines = [line for part in "ab" for _, line, *_ in rows[part]]
open(f"{work}/expected", "w").write("".join(sorted(line + "\n" for line in lines)))
PY
status=$(curl -s -o "$work/answer" -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @"$work/push.json" "$url/loki/api/v1/push")
[ "$status" = 204 ] || { echo "push: $status $(cat "$work/answer")" >&2; exit 1; }

failed=0
check() { # name, expected file, found file
    if cmp -s "$2" "$3"; then
        echo "ok    $1"
    else
        echo "WRONG $1"
        diff "$2" "$3" | head -5 || true
        failed=1
    fi
}
ask() { "$logcli" --addr="$url" "$@" 2>>"$work/logcli.err"; }

questions() {
    local state=$1 direction batch
    for direction in "" --forward; do
        for batch in 10 33 100 999 1000 5000; do
            # shellcheck disable=SC2086
            ask query --quiet --output=raw --since=1h --limit=100000 --batch="$batch" $direction '{app="peer"}' | LC_ALL=C sort >"$work/found" || true
            check "$state: query ${direction:---backward} --batch=$batch" <(LC_ALL=C sort "$work/expected") "$work/found"
        done
    done
    ask query --quiet --output=raw --since=1h --limit=7 --forward '{app="peer"}' | wc -l | tr -d ' ' >"$work/found"
    check "$state: query --limit=7" <(echo 7) "$work/found"
    ask query --quiet --output=raw --since=1h --limit=1000 --forward '{part="a"} |= "0007"' >"$work/found"
    check "$state: query with a filter" <(echo 'a 0007 "quoted" \ back') "$work/found"
    ask query --quiet --output=jsonl --since=1h --limit=5 '{part="b"} |= "b 0399"' | python3 -c 'import json,sys; print(json.loads(sys.stdin.readline())["line"])' >"$work/found"
    check "$state: query --output=jsonl" <(echo "b 0399 é") "$work/found"
    ask labels --quiet --since=1h >"$work/found"
    check "$state: labels" <(printf 'app\npart\n') "$work/found"
    ask labels --quiet --since=1h part >"$work/found"
    check "$state: labels part" <(printf 'a\nb\n') "$work/found"
    ask series --quiet --since=1h '{app="peer"}' | LC_ALL=C sort >"$work/found"
    check "$state: series" <(printf '{app="peer", part="a"}\n{app="peer", part="b"}\n') "$work/found"
    ask query --quiet --since=1h '{app="peer"' >"$work/found" 2>&1 && { echo "WRONG $state: a query that does not parse succeeded"; failed=1; } || echo "ok    $state: a query that does not parse"
}

questions memory
stop
start
questions flushed
stop
"$haystore" compact --store "$work/store" 2>>"$work/server.log"
start
questions compacted
stop
if [ "$failed" = 1 ]; then tail -20 "$work/logcli.err" >&2; fi
exit "$failed"

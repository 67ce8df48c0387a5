#!/bin/sh
# Real logs in, the same bytes out: for every packed set DIR/NAME.tar.zst, ingests each of its files with
# --timestamps none and compares `scan --output raw` with the file, as ingested and after compaction.
#
#   tests/real-logs.sh DIR [SET …]        HAYSTORE=path/to/haystore (default: target/release/haystore)
#
# Prints a line for each set: files, raw bytes, bytes stored, raw/stored as ingested and compacted. Exits with 1
# when a file came back changed, or a command failed.
set -eu

data=${1:?usage: tests/real-logs.sh DIR [SET …]}
shift
here=$(cd "$(dirname "$0")/.." && pwd)
haystore=${HAYSTORE:-$here/target/release/haystore}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
failures=0

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# What a scan must give: the file as its packing holds it, ended with a newline when it is not empty.
expected() {
    case $(head -c 4 "$1" | od -An -tx1 | tr -d ' \n') in
        1f8b*) gzip -dc "$1" ;;
        28b52ffd) zstd -dcq "$1" ;;
        *) cat "$1" ;;
    esac > "$work/expected"
    if [ -s "$work/expected" ] && [ "$(tail -c 1 "$work/expected" | od -An -tx1)" != " 0a" ]; then
        echo >> "$work/expected"
    fi
}

# The file's path as a LogQL string.
quoted() {
    printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g'
}

compare() {
    while IFS= read -r file; do
        expected "$file"
        "$haystore" scan --store "$work/store" "{filename=\"$(quoted "$file")\"}" > "$work/scanned" 2> "$work/said" ||
            fail "$set: $file: $(cat "$work/said")"
        cmp -s "$work/expected" "$work/scanned" || fail "$set: $file differs ($1): $(cmp "$work/expected" "$work/scanned" 2>&1 || true)"
    done < "$work/files"
}

# The bytes of a row of `du`.
stored() {
    "$haystore" du --store "$work/store" | awk -v row="$1" 'index($0, row) == 1 { gsub(/,/, ""); gsub(/\([^)]*\)/, ""); print $(split(row, words, " ") + 1); exit }'
}

ratio() {
    awk -v raw="$1" -v stored="${2:-0}" 'BEGIN { if (stored > 0) printf "%.2f", raw / stored; else printf "-" }'
}

one_set() {
    rm -rf "$work/set" "$work/store"
    mkdir "$work/set"
    zstd -dcq --long=27 "$data/$set.tar.zst" | tar -x -C "$work/set"
    (cd "$work" && find set -type f | LC_ALL=C sort) > "$work/names"
    sed "s|^|$work/|" "$work/names" > "$work/files"
    tr '\n' '\0' < "$work/files" | xargs -0 "$haystore" ingest --store "$work/store" --timestamps none -- 2> "$work/said" ||
        fail "$set: ingest: $(cat "$work/said")"
    grep -q REJECTED "$work/said" && fail "$set: $(cat "$work/said")"
    compare "as ingested"
    raw=$(stored "raw logs")
    first=$(stored stored)
    "$haystore" compact --store "$work/store" > /dev/null || fail "$set: compact"
    compare compacted
    "$haystore" verify --store "$work/store" > "$work/said" 2>&1 || fail "$set: verify: $(cat "$work/said")"
    second=$(stored stored)
    printf '%-26s %6d files %12s raw %12s stored   %6s as ingested  %6s compacted\n' "$set" "$(wc -l < "$work/files")" "$raw" "$second" \
        "$(ratio "$raw" "$first")" "$(ratio "$raw" "$second")"
}

[ $# -gt 0 ] || set -- $(cd "$data" && ls -- *.tar.zst | sed 's/\.tar\.zst$//')
for set in "$@"; do
    one_set
done
[ "$failures" -eq 0 ] || { echo "$failures failures" >&2; exit 1; }
echo "every file came back byte for byte"

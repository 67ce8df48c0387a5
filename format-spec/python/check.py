#!/usr/bin/env python3
"""Runs `haystore_reader.py` on every golden file and compares with what is expected; exit code 1 where it differs.

Good files must give their `.expected` bytes; bad ones one line with an error, nothing else, and exit code 1. Then small
good files are cut and flipped: the reader must refuse them, or read what it read before.
"""

import random
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import haystore_reader
import zstandard

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
SMALL_FILE_BYTES = 6000
DAMAGES = 500


def segments(folder):
    """The paths of the segments that a folder's INDEX names."""
    names = [line.split()[0] for line in (GOLDEN / folder / "INDEX").read_text().splitlines()]
    return [GOLDEN / folder / name for name in names if name.endswith(".segment")]


def expected(segment):
    """The expected bytes of a segment."""
    plain = segment.with_suffix(".expected")
    if plain.exists():
        return plain.read_bytes()
    return zstandard.ZstdDecompressor().decompressobj().decompress(segment.with_suffix(".expected.zst").read_bytes())


def read(segment, *options):
    """(exit code, standard output, standard error) of the reader."""
    done = subprocess.run([sys.executable, HERE / "haystore_reader.py", *options, segment], capture_output=True)
    return done.returncode, done.stdout, done.stderr


def lines(records):
    """What the reader prints for expected records without `--records`: their last fields, without escapes."""
    fields = [record.split(b"\t")[5] for record in records.splitlines()]
    return b"".join(re.sub(rb"\\x(..)", lambda hex: bytes.fromhex(hex[1].decode()), field) + b"\n" for field in fields)


def check_good(segment):
    records = expected(segment)
    return read(segment, "--records") == (0, records, b"") and read(segment) == (0, lines(records), b"")


def check_bad(segment):
    """Whether a bad file is refused as it must be, and whether at the reference decoder's offset, which need not be."""
    code, output, errors = read(segment, "--records")
    error = re.fullmatch(re.escape(bytes(segment)) + rb": (damaged at byte \d+: )[^\n]+\n", errors)
    refused = code == 1 and output == b"" and error is not None
    return refused, refused and expected(segment).startswith(error[1])


def damage(data, dice):
    """A copy of the bytes that is cut short, or has up to three bits flipped."""
    damaged = bytearray(data)
    if dice.randrange(4) == 0:
        return bytes(damaged[: dice.randrange(len(data))])
    for _ in range(dice.randrange(1, 4)):
        damaged[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(damaged)


def check_damage(data, records, dice):
    """Whether damaged bytes are refused, or give the same records."""
    try:
        groups = list(haystore_reader.read_segment(damage(data, dice)))
    except haystore_reader.Damaged:
        return True
    return b"".join(haystore_reader.dump(record) + b"\n" for group in groups for record in group) == records


def main():
    good, bad = segments("v1"), segments("bad")
    wrong = [path for path in good if not check_good(path)]
    refusals = [check_bad(path) for path in bad]
    wrong += [path for path, (refused, _) in zip(bad, refusals) if not refused]
    small = [(path, path.read_bytes(), expected(path)) for path in good if path.stat().st_size < SMALL_FILE_BYTES]
    dice = random.Random(1)
    for number in range(DAMAGES):
        path, data, records = small[number % len(small)]
        if not check_damage(data, records, dice):
            wrong.append(path)
    if not good or not bad:
        sys.exit("golden files are missing")
    for path in wrong:
        print(f"not as expected: {path.relative_to(GOLDEN)}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    same = sum(same for _, same in refusals)
    print(f"{len(good)} good and {len(bad)} bad files as expected ({same} at the reference decoder's offset), {DAMAGES} cuts and flips")


if __name__ == "__main__":
    main()

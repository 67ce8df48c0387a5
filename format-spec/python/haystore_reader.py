#!/usr/bin/env python3
"""Reads a Haystore segment and prints its lines, written from the chapters of the format specification alone.

    haystore_reader.py [--records] SEGMENT

prints the lines of all records in stored order; with `--records` whole records, in the form of the golden `.expected`
files. A file that breaks a rule of the format gives one line on standard error and exit code 1; what was printed before
it is whole row groups. Needs the packages `zstandard` and `pcodec` (which brings `numpy`).

It is simple, not fast: the file and one row group of records are in memory. Headings name the chapter where the rules stand.
"""

import datetime
import os
import re
import struct
import sys
import zlib
from collections import namedtuple
from contextlib import contextmanager

try:
    import numpy
    import pcodec.wrapped
    import zstandard
except ImportError as missing:
    sys.exit(f"haystore_reader: {missing}; install the packages zstandard and pcodec")

MAGIC = b"HAYSEG\x01\x00"
TRAILER_BYTES = 24
TENANT = re.compile(rb"[A-Za-z0-9!\-_.*'()]{1,150}")
RANGES_MAX = 1 << 20
PAGE_VALUES_MIN = 4096
OWN_FRAME_BYTES = 8192
SHARED_FRAME_BYTES = 16384
DICTIONARY_PAGE_ENTRIES_MAX = 65536
SHAPES_BYTES_MAX = 1 << 28
WINDOW_BYTES_MAX = 1 << 27
PCO_VERSION = (4, 1)  # the newest
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
U32 = 1 << 32
U64 = 1 << 64

CONSTANT, SAME, TEXT, NUMBER, DICTIONARY, SHAPES, ESCAPED, MAPPED, LIST, COMPUTED = range(10)
INT, PADDED, DECIMAL, TIME, SHORT_TIME, SHORT_DECIMAL = range(6)
CLASS_TEXT, HEX_LOWER, HEX_UPPER, UUID, IPV4 = range(5)

# Limits of this reader, not of the format: values that a column has in a row group, bytes of a column in a row range.
VALUES_MAX = 1 << 26
BYTES_MAX = 1 << 30

Group = namedtuple("Group", "tenant offset rows line_bytes least greatest streams first_labels frames plan root")
Section = namedtuple("Section", "stored length checksum")
Plan = namedtuple("Plan", "ranges domains dictionaries columns dictionary_area data_area roots")
Dictionary = namedtuple("Dictionary", "kind width entries page_entries sets page_bytes")
Column = namedtuple("Column", "domain tag argument")
Slot = namedtuple("Slot", "column aligned")
Area = namedtuple("Area", "pieces frames")
Roots = namedtuple("Roots", "lines metadata formats labels stream_rows streams explicit derived")
Root = namedtuple("Root", "ranges fences")
Piece = namedtuple("Piece", "bytes offset")
Record = namedtuple("Record", "tenant labels timestamp format metadata line")


class Damaged(Exception):
    """What is wrong, and the offset in the segment where; the offset may be added later, by `located`."""

    def __init__(self, what, offset=None):
        super().__init__(what)
        self.what, self.offset = what, offset

    def __str__(self):
        return f"damaged at byte {self.offset}: {self.what}"


def check(holds, what):
    """Raises `Damaged` unless the rule holds."""
    if not holds:
        raise Damaged(what)


@contextmanager
def located(offset):
    """Damage found in the block is damage of the stored thing that begins at `offset`."""
    try:
        yield
    except Damaged as damage:
        if damage.offset is None:
            damage.offset = offset
        raise


class Cursor:
    """Reads bytes from the front. Each method raises `Damaged` where the bytes end early or break a rule of README.md."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        check(count <= len(self.data) - self.at, "bytes end early")
        self.at += count
        return self.data[self.at - count : self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)

    def end(self):
        check(self.at == len(self.data), "bytes left over")

    def u8(self):
        return self.take(1)[0]

    def u32(self):
        return int.from_bytes(self.take(4), "little")

    def varint(self):
        number = 0
        for shift in range(0, 70, 7):
            byte = self.u8()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                check(number < U64, "a number above 64 bits")
                check(byte > 0 or shift == 0, "a number longer than it need be")
                return number
        raise Damaged("a number of more than ten bytes")

    def below(self, bound, what):
        number = self.varint()
        check(number < bound, what)
        return number

    def signed(self):
        return unzigzag(self.varint())

    def bytes(self):
        return self.take(self.varint())

    def list(self, read):
        """As many things as the varint in front says, each as `read()` gives it."""
        count = self.varint()
        check(count <= len(self.data) - self.at, "a count above the bytes that are left")
        return [read() for _ in range(count)]


def unzigzag(number):
    return number >> 1 if number % 2 == 0 else -(number + 1 >> 1)


def wrap_i64(number):
    return (number + (1 << 63)) % U64 - (1 << 63)


def decompress(stored, length, name):
    """The contents of exactly one zstd frame; `Damaged` if they have another length than `length`."""
    check(stored[:4] == ZSTD_MAGIC, f"the {name} is no zstd frame")
    stream = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX).decompressobj()
    parts, size, at = [], 0, 0
    try:
        while not stream.eof and at < len(stored) and size <= length:
            parts.append(stream.decompress(stored[at : at + 64]))  # few bytes, since they may become very many
            size += len(parts[-1])
            at += 64
    except zstandard.ZstdError:
        raise Damaged(f"the {name} is no zstd frame") from None
    check(size <= length, f"the {name} decompresses to another length")
    check(stream.eof, f"the {name} is no whole zstd frame")
    check(size == length, f"the {name} decompresses to another length")
    check(at >= len(stored) and not stream.unused_data, f"bytes behind the zstd frame of the {name}")
    return b"".join(parts)


# --- segment.md ---


def read_footer(data):
    """The row groups of a segment, as a list of `Group`; `Damaged` if header, trailer or footer are."""
    if len(data) < len(MAGIC) + TRAILER_BYTES:
        raise Damaged("too short to be a segment", 0)
    if data[:8] != MAGIC:
        raise Damaged("no header of this format version", 0)
    if data[-8:] != MAGIC:
        raise Damaged("no trailer of this format version", len(data) - 8)
    trailer = len(data) - TRAILER_BYTES
    stored, length, checksum, trailer_checksum = struct.unpack("<4I", data[trailer:-8])
    begin = trailer - stored
    with located(trailer):
        check(zlib.crc32(data[trailer : trailer + 12] + MAGIC) == trailer_checksum, "checksum of the trailer does not match")
        check(begin >= len(MAGIC), "footer longer than the segment")
    with located(begin):
        check(zlib.crc32(data[begin:trailer]) == checksum, "checksum of the footer does not match")
        cursor = Cursor(decompress(data[begin:trailer], length, "footer"))
        groups = cursor.list(lambda: read_group(cursor))
        cursor.end()
        end = len(MAGIC)
        for group in groups:
            check(group.offset == end, "a row group does not begin where the one before ends")
            end += group.frames + group.plan.stored + group.root.stored
        if end != begin:
            raise Damaged("the last row group does not end where the footer begins", min(end, begin))
    return groups


def read_group(cursor):
    """A `Group`, as the footer has it."""
    tenant = cursor.bytes()
    check(TENANT.fullmatch(tenant) and tenant not in (b".", b".."), "bad tenant")
    offset, rows, line_bytes = cursor.varint(), cursor.below(U32, "too many rows"), cursor.varint()
    least, greatest, streams = cursor.signed(), cursor.signed(), cursor.below(U32, "too many streams")
    labels, frames = cursor.bytes(), cursor.varint()
    return Group(tenant, offset, rows, line_bytes, least, greatest, streams, labels, frames, read_section(cursor), read_section(cursor))


def read_section(cursor):
    return Section(cursor.below(U32, "section too long"), cursor.below(U32, "section too long"), cursor.u32())


def open_section(data, offset, section, name):
    """A cursor on the contents of a section that is stored at `offset`; `Damaged` if its checksum or frame is wrong."""
    stored = data[offset : offset + section.stored]
    check(zlib.crc32(stored) == section.checksum, f"checksum of the {name} does not match")
    return Cursor(decompress(stored, section.length, name))


# --- row-group.md: plan and root ---


def read_plan(cursor):
    """A `Plan`; every reference in it leads somewhere, except that `check_roots` still has to look at the roots."""
    ranges = cursor.below(RANGES_MAX + 1, "too many row ranges")
    domains = cursor.list(lambda: read_domain(cursor, ranges))
    dictionaries = cursor.list(lambda: read_dictionary(cursor))
    columns = []
    cursor.list(lambda: columns.append(read_column(cursor, domains, dictionaries, columns)))
    plan = Plan(ranges, domains, dictionaries, columns, read_area(cursor), read_area(cursor), read_roots(cursor, columns))
    cursor.end()
    return plan


def read_domain(cursor, ranges):
    """A domain as a dict: row range → number of values (1 or more), ascending."""
    domain, at = {}, 0

    def element():
        nonlocal at
        at += cursor.below(ranges - at, "no such row range")
        domain[at] = cursor.varint() + 1
        at += 1

    cursor.list(element)
    check(sum(domain.values()) < U32, "too many values")
    check(sum(domain.values()) <= VALUES_MAX, "more values than this reader takes")
    return domain


def read_dictionary(cursor):
    """A `Dictionary`; `width` is None for text, else the bytes of a key."""
    kind = cursor.u8()
    check(kind <= IPV4, "unknown class")
    width = {CLASS_TEXT: None, UUID: 16, IPV4: 4}.get(kind)
    if kind in (HEX_LOWER, HEX_UPPER):
        width = cursor.u8()
        check(4 <= width <= 64, "bad width of a hex class")
    entries, page_entries, sets = cursor.below(U32, "too many entries"), cursor.varint(), cursor.u8()
    check(entries <= VALUES_MAX, "more entries than this reader takes")
    check(1 <= page_entries <= DICTIONARY_PAGE_ENTRIES_MAX, "bad number of entries a page")
    check(sets <= 1, "bad flag of page sets")
    return Dictionary(kind, width, entries, page_entries, sets == 1, cursor.below(U32, "bad bytes of a page"))


def read_column(cursor, domains, dictionaries, before):
    """A `Column`; `before` are the columns that it may refer to."""
    domain, tag = cursor.below(len(domains), "no such domain"), cursor.u8()
    argument = None
    if tag == CONSTANT:
        argument = cursor.bytes()
    elif tag == SAME:
        argument = read_other(cursor, domain, before)
    elif tag == NUMBER:
        argument = read_type(cursor)
    elif tag == DICTIONARY:
        argument = cursor.below(len(dictionaries), "no such dictionary")
    elif tag == SHAPES:
        argument = read_shapes(cursor, domain, before)
    elif tag == ESCAPED:
        argument = read_other(cursor, domain, before), cursor.u8()
        check(argument[1] < len(ESCAPES), "unknown way to escape")
    elif tag == MAPPED:
        argument = read_mapping(cursor, domain, dictionaries, before)
    elif tag == LIST:
        counts, elements = read_other_numbers(cursor, domain, before), cursor.below(len(before), "no such column")
        argument = counts, elements, cursor.bytes()
    elif tag == COMPUTED:
        source, divisor = read_other_numbers(cursor, domain, before), cursor.below(1 << 63, "bad divisor")
        check(divisor > 0, "bad divisor")
        argument = source, divisor, cursor.signed(), read_type(cursor)
    else:
        check(tag == TEXT, "unknown encoding of a column")
    return Column(domain, tag, argument)


def read_other(cursor, domain, before):
    """The number of a column from which one of this domain is made, row by row."""
    column = cursor.below(len(before), "no such column")
    check(before[column].domain == domain, "a column and the one it is made from have different domains")
    return column


def read_other_numbers(cursor, domain, before):
    """As `read_other`, of a column whose numbers are asked for."""
    column = read_other(cursor, domain, before)
    check(number_column(before, column) is not None, "a column that must have numbers has none")
    return column


def read_mapping(cursor, domain, dictionaries, before):
    """Key, dictionary and table of a column that is a function of another (encodings.md)."""
    key, dictionary = read_other(cursor, domain, before), cursor.below(len(dictionaries), "no such dictionary")
    table = cursor.list(lambda: cursor.below(dictionaries[dictionary].entries, "no such dictionary entry"))
    check(before[key].tag == DICTIONARY, "the key of a mapped column has no entry numbers")
    check(len(table) == dictionaries[before[key].argument].entries, "a table of another length than its key's dictionary")
    return key, dictionary, table


def read_shapes(cursor, domain, before):
    """The shapes of a column, each a list of its parts: bytes for a literal, a `Slot` for a slot of either kind (shapes.md)."""
    pieces = cursor.list(lambda: read_template_piece(cursor, domain, before))
    shapes, literals = [], 0

    def shape():
        nonlocal literals
        parts, after = [], 0
        for number in cursor.list(cursor.varint):
            piece = number - 1 if number else after
            check(piece < len(pieces), "no such piece of a shape")
            parts += pieces[piece]
            literals += sum(len(part) for part in pieces[piece] if isinstance(part, bytes))
            after = piece + 1
        check(literals <= SHAPES_BYTES_MAX, "literals of too many bytes")
        shapes.append(parts)

    cursor.list(shape)
    return shapes


def read_template_piece(cursor, domain, before):
    """The parts, none to two, that a piece puts into the shapes that name it."""
    literal, tail = cursor.bytes(), cursor.varint()
    parts = [literal] if literal else []
    if tail:
        column, aligned = (tail - 1) // 2, tail % 2 == 0
        check(column < len(before), "no such column")
        check(not aligned or before[column].domain == domain, "an aligned slot of a column with another domain")
        parts.append(Slot(column, aligned))
    return parts


def read_type(cursor):
    """What numbers print as: the tag and its parameters (encodings.md)."""
    tag = cursor.u8()
    if tag == PADDED:
        width = cursor.u8()
        check(1 <= width <= 18, "bad width")
        return tag, width
    if tag in (DECIMAL, SHORT_DECIMAL):
        scale = cursor.u8()
        check(1 <= scale <= 17, "bad scale")
        if tag == DECIMAL:
            return tag, scale
        point = cursor.u8()
        check(point <= 1, "bad flag of a point")
        return tag, scale, point == 1
    if tag in (TIME, SHORT_TIME):
        family, separator, digits = cursor.take(3)
        check(family < 6 and digits <= 9 and separator in (b".," if digits else b"\0"), "bad layout of a time")
        check(digits > 0 or tag == TIME, "bad layout of a time")
        return tag, family, bytes([separator]) if digits else b"", digits
    check(tag == INT, "unknown type of numbers")
    return (tag,)


def read_area(cursor):
    """An `Area`: pieces as (length, hard), frames as (stored length, is zstd, checksum)."""

    def halves():
        number = cursor.varint()
        check(number >> 1 < U32, "too long")
        return number >> 1, number % 2 == 1

    return Area(cursor.list(halves), cursor.list(lambda: (*halves(), cursor.u32())))


def read_roots(cursor, columns):
    def column():
        return cursor.below(len(columns), "no such column")

    lines, metadata, formats, labels, stream_rows = (column() for _ in range(5))
    streams, explicit = cursor.below(U32, "too many streams"), column()
    shapes = columns[lines].argument if columns[lines].tag == SHAPES else []
    derived = {}

    def derived_timestamp():
        shape, source = cursor.below(len(shapes), "no such shape"), column()
        check(shape > max(derived, default=-1), "derived timestamps do not ascend")
        check(source in slots(shapes[shape]), "a derived timestamp whose shape has no slot of its column")
        derived[shape] = source, cursor.signed(), cursor.signed()

    cursor.list(derived_timestamp)
    for source in (stream_rows, explicit, *(source for source, _, _ in derived.values())):
        check(number_column(columns, source) is not None, "a column that must have numbers has none")
    return Roots(lines, metadata, formats, labels, stream_rows, streams, explicit, derived)


def slots(shape):
    """The columns of a shape's slots in their order; aligned slots, which take nothing, are left out."""
    return [part.column for part in shape if isinstance(part, Slot) and not part.aligned]


def number_column(columns, column):
    """The column itself, or the one that it is the same as, if it is one of numbers; else None."""
    if columns[column].tag == SAME:
        column = columns[column].argument
    return column if columns[column].tag == NUMBER else None


def read_root(cursor):
    """A `Root`: row ranges as (rows, least, greatest), fences as a list for each dictionary."""

    def row_range():
        rows, least, width = cursor.varint(), cursor.signed(), cursor.varint()
        check(rows > 0, "a row range without rows")
        return rows, least, wrap_i64(least + width)

    root = Root(cursor.list(row_range), cursor.list(lambda: cursor.list(cursor.bytes)))
    cursor.end()
    return root


def check_roots(plan, root, group):
    """Footer, plan and root say the same rows, streams and dictionary pages."""
    rows = {number: rows for number, (rows, _, _) in enumerate(root.ranges)}
    roots, domain_of = plan.roots, lambda column: plan.domains[plan.columns[column].domain]
    check(rows, "a row group without row ranges")
    check(plan.ranges == len(rows) and sum(rows.values()) == group.rows, "root, plan and footer say different rows")
    check(all(domain_of(c) == rows for c in (roots.lines, roots.metadata, roots.formats)), "root, plan and footer say different rows")
    check(roots.streams == group.streams, "plan and footer say different streams")
    streams = {0: roots.streams} if roots.streams else {}
    check(all(domain_of(c) == streams for c in (roots.labels, roots.stream_rows)), "labels that are not one for each stream")
    pages = [page_count(dictionary) for dictionary in plan.dictionaries]
    check([len(fences) for fences in root.fences] == pages, "fences of another number of dictionaries or pages")


# --- row-group.md: pages, pieces and frames ---


def page_count(dictionary):
    """The number of its pages: entries by entries a page, rounded up."""
    return -(-dictionary.entries // dictionary.page_entries)


def column_pages(plan, column):
    """The row ranges of each page of a column."""
    pages, ranges, values = [], [], 0
    if column.tag not in (TEXT, NUMBER, DICTIONARY, SHAPES):
        return pages
    for number, count in plan.domains[column.domain].items():
        ranges.append(number)
        values += count
        if values >= PAGE_VALUES_MIN:
            pages.append(ranges)
            ranges, values = [], 0
    return pages + [ranges] if ranges else pages


def pack(lengths):
    """Deals out pieces, given as (length, hard), to frames: for each frame the numbers of its pieces, in order."""
    frames, open_frames = [], {}
    for number, (length, hard) in enumerate(lengths):
        if length >= OWN_FRAME_BYTES:
            frames.append([number])
            continue
        frame, size = open_frames.pop(hard, (None, 0))
        if frame is None:
            frame = []
            frames.append(frame)
        frame.append(number)
        if size + length < SHARED_FRAME_BYTES:
            open_frames[hard] = frame, size + length
    return frames


def read_pieces(data, offset, area):
    """All pieces of an area that begins at `offset`, as a list of `Piece`, and the offset where its frames end."""
    packed = pack(area.pieces)
    with located(offset):
        check(len(packed) == len(area.frames), "pieces and frames do not go together")
    pieces = [None] * len(area.pieces)
    for numbers, (stored_length, is_zstd, checksum) in zip(packed, area.frames):
        with located(offset):
            contents = data[offset : offset + stored_length]
            length = sum(area.pieces[number][0] for number in numbers)
            check(zlib.crc32(contents) == checksum, "checksum of the frame does not match")
            if is_zstd:
                contents = decompress(contents, length, "frame")
            check(len(contents) == length, "frame of another length than its pieces")
        cursor = Cursor(contents)
        for number in numbers:
            pieces[number] = Piece(cursor.take(area.pieces[number][0]), offset)
        offset += stored_length
    return pieces, offset


# --- encodings.md: pages of integers and of text ---


def integer_page(data, count):
    """`count` numbers of 64 bits, which fill the bytes."""
    cursor = Cursor(data)
    form = cursor.u8()
    if form == 0:
        numbers = [cursor.varint()] * count
    elif form == 1:
        base = cursor.varint()
        numbers = [(base + cursor.varint()) % U64 for _ in range(count)]
    elif form == 2:
        width, base = plane_width(cursor), cursor.varint()
        numbers = [(base + number) % U64 for number in planes(cursor, width, count)]
    elif form == 3:
        check(count > 0, "a page of differences without values")
        numbers, width = [cursor.varint()], plane_width(cursor)
        for difference in planes(cursor, width, count - 1):
            numbers.append((numbers[-1] + unzigzag(difference)) % U64)
    elif form in (4, 5):
        base = cursor.varint()
        numbers = [(base + number) % U64 for number in pco(cursor.rest(), count, "u32" if form == 4 else "u64")]
    else:
        raise Damaged("unknown form of integers")
    cursor.end()
    return numbers


def plane_width(cursor):
    width = cursor.u8()
    check(1 <= width <= 8, "bad width of planes")
    return width


def planes(cursor, width, count):
    """`count` numbers of `width` bytes, stored lowest bytes first, as 8-byte ones."""
    check(width * count <= len(cursor.data), "bytes end early")
    numbers = bytearray(8 * count)
    for plane in range(width):
        numbers[plane::8] = cursor.take(count)
    return struct.unpack(f"<{count}Q", numbers)


def pco(data, count, dtype):
    """`count` numbers from pcodec's wrapped format: header, one chunk's metadata, its one page, and nothing else."""
    check(tuple(data[:2]) <= PCO_VERSION, "a pco page of a later version")
    numbers = numpy.zeros(count, dtype={"u32": numpy.uint32, "u64": numpy.uint64}[dtype])
    try:
        file, size = pcodec.wrapped.FileDecompressor.new(data)
        data = data[size:]
        chunk, size = file.chunk_decompressor(data, dtype)
        data = data[size:]
        progress, size = chunk.read_page_into(data, count, numbers)
    except (RuntimeError, TypeError, ValueError):
        raise Damaged("damaged pco page") from None
    check(progress.n_processed == count and progress.finished and size == len(data), "pco page of another length")
    return numbers.tolist()


def text_page(data, count):
    """`count` byte strings, which fill the bytes."""
    cursor = Cursor(data)
    lengths = integer_page(cursor.bytes(), count)
    texts = [cursor.take(length) for length in lengths]
    cursor.end()
    return texts


# --- encodings.md: dictionaries ---


def read_dictionaries(plan, pieces, fences):
    """For each dictionary (values, sets): for each entry its value, and the set of row ranges that it may be in, or None."""
    return [read_entries(plan, dictionary, pieces, fence) for dictionary, fence in zip(plan.dictionaries, fences)]


def read_entries(plan, dictionary, pieces, fences):
    """Values and sets of one dictionary; takes as many `pieces` as it has."""
    keys, sets = [], []
    for fence in fences:
        piece, count = next(pieces), min(dictionary.page_entries, dictionary.entries - len(keys))
        with located(piece.offset):
            if dictionary.width is None:
                page = text_entries(piece.bytes, count, dictionary.page_bytes)
            else:
                page = packed_entries(piece.bytes, count, dictionary.width)
            around = keys[-1:] + page
            check(all(a < b for a, b in zip(around, around[1:])), "entries of a dictionary are not sorted")
            check(fence <= page[0] and (not keys or keys[-1] < fence), "a fence does not part its dictionary pages")
        keys += page
        if dictionary.sets:
            piece = next(pieces)
            with located(piece.offset):
                sets += page_sets(piece.bytes, count, plan.ranges)
    return [print_key(dictionary.kind, key) for key in keys], sets or [None] * len(keys)


def text_entries(data, count, bytes_max):
    """`count` keys of a page with front coding, which have at most `bytes_max` bytes together."""
    cursor = Cursor(data)
    shared = integer_page(cursor.bytes(), count)
    entries, before, size = [], b"", 0
    for length, rest in zip(shared, text_page(cursor.rest(), count)):
        check(length <= len(before), "prefix longer than the entry before")
        before = before[:length] + rest
        entries.append(before)
        size += len(before)
        check(size <= bytes_max, "dictionary page of too many bytes")
    return entries


def packed_entries(data, count, width):
    """`count` keys of `width` bytes."""
    cursor, entries = Cursor(data), [b""] * count
    for at in range(0, width, 8):
        size = min(8, width - at)
        numbers = integer_page(cursor.bytes() if at + size < width else cursor.rest(), count)
        check(all(number < 256**size for number in numbers), "an integer that its chunk of an entry cannot hold")
        entries = [entry + number.to_bytes(size, "big") for entry, number in zip(entries, numbers)]
    return entries


def page_sets(data, count, ranges):
    """For each entry of a page a set of row ranges, or None where nothing is said."""
    cursor = Cursor(data)
    counts = integer_page(cursor.bytes(), count)
    check(all(said <= ranges for said in counts), "a set of more row ranges than there are")
    check(sum(counts) <= VALUES_MAX, "more row ranges in sets than this reader takes")
    numbers, at, sets = integer_page(cursor.rest(), sum(counts)), 0, []
    for said in counts:
        members = numbers[at : at + said]
        at += said
        check(all(a < b for a, b in zip(members, members[1:])), "row ranges of a set do not ascend")
        check(all(number < ranges for number in members), "a set with a row range that there is not")
        sets.append(frozenset(members) if said else None)
    return sets


def print_key(kind, key):
    """The value that a key of a dictionary's pages stands for."""
    if kind == HEX_LOWER:
        return key.hex().encode()
    if kind == HEX_UPPER:
        return key.hex().upper().encode()
    if kind == UUID:
        digits = key.hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])).encode()
    return ".".join(map(str, key)).encode() if kind == IPV4 else key


# --- encodings.md, shapes.md: what numbers print as ---


MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
DAYS_OF_400_YEARS = 146097
DAYS_TO_1970 = 719528
FAMILIES = (  # first and behind last day of the numbers, from the origin; day that the origin is, from year 0
    *[(-DAYS_TO_1970, 25 * DAYS_OF_400_YEARS - DAYS_TO_1970, DAYS_TO_1970)] * 4,
    (0, 366, 0),
    (0, 1, 0),
)


def can_print(layout, number):
    """Whether a type has the number, an i64."""
    tag, *parameters = layout
    if tag == PADDED:
        return 0 <= number < 10 ** parameters[0]
    if tag in (DECIMAL, SHORT_DECIMAL):
        return abs(number) < 10**18
    if tag in (TIME, SHORT_TIME):
        family, _, digits = parameters
        first, end, _ = FAMILIES[family]
        return first <= number // (86400 * 10**digits) < end
    return True


def print_number(layout, number):
    """The bytes that a number prints as, which its type can print."""
    tag, *parameters = layout
    if tag == INT:
        return b"%d" % number
    if tag == PADDED:
        return b"%0*d" % (parameters[0], number)
    if tag == DECIMAL:
        return print_decimal(*parameters, number)
    if tag == SHORT_DECIMAL:
        scale, point = parameters
        text = print_decimal(scale, number).rstrip(b"0")
        if text.endswith(b"."):
            return text + b"0" if point else text[:-1]
        return text
    text = print_time(*parameters, number)
    return text.rstrip(b"0").rstrip(parameters[1]) if tag == SHORT_TIME else text


def print_decimal(scale, number):
    """The bytes of a number that counts units of 10^-scale."""
    whole, fraction = divmod(abs(number), 10**scale)
    return b"%s%d.%0*d" % (b"-" if number < 0 else b"", whole, scale, fraction)


def print_time(family, separator, digits, number):
    """The bytes of a time; `number` counts units of 10^-digits seconds from the family's origin (shapes.md)."""
    seconds, fraction = divmod(number, 10**digits)
    days, seconds = divmod(seconds, 86400)
    clock = b"%02d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60)
    if digits:
        clock += b"%s%0*d" % (separator, digits, fraction)
    if family == 5:
        return clock
    cycle, days = divmod(days + FAMILIES[family][2], DAYS_OF_400_YEARS)
    date = datetime.date(2000, 1, 1) + datetime.timedelta(days)  # the calendar repeats; year 2000 is like year 0
    year, month = date.year - 2000 + 400 * cycle, MONTHS[date.month - 1]
    if family == 4:
        return b"%s %2d %s" % (month, date.day, clock)
    if family == 3:
        return b"%02d/%s/%04d:%s" % (date.day, month, year, clock)
    template = (b"%04d-%02d-%02dT%s", b"%04d-%02d-%02d %s", b"%04d/%02d/%02d %s")[family]
    return template % (year, date.month, date.day, clock)


# --- Columns ---


def read_columns(plan, pieces):
    """What the pages of each column hold: row range → list of byte strings (TEXT) or of integers."""
    pages = [(ranges[0], c, p, ranges) for c, column in enumerate(plan.columns) for p, ranges in enumerate(column_pages(plan, column))]
    check(len(pages) == len(pieces), "another number of pieces than columns have pages")
    stored = [{} for _ in plan.columns]
    for (_, number, _, ranges), piece in zip(sorted(pages), pieces):
        column = plan.columns[number]
        counts = [plan.domains[column.domain][r] for r in ranges]
        with located(piece.offset):
            page, at = read_page(plan, column, piece.bytes, sum(counts)), 0
        for r, count in zip(ranges, counts):
            stored[number][r] = page[at : at + count]
            at += count
    return stored


def read_page(plan, column, data, count):
    """A page of a column: byte strings (TEXT), i64s (NUMBER), numbers of entries or of shapes; all that there are."""
    if column.tag == TEXT:
        return text_page(data, count)
    numbers = integer_page(data, count)
    if column.tag == NUMBER:
        numbers = [number - (1 << 63) for number in numbers]
        check(all(can_print(column.argument, number) for number in numbers), "a number that its type cannot print")
    elif column.tag == DICTIONARY:
        check(max(numbers) < plan.dictionaries[column.argument].entries, "no such dictionary entry")
    else:
        check(max(numbers) < len(column.argument), "no such shape")
    return numbers


def range_values(plan, dictionaries, stored, number):
    """The values of all columns in one row range, as a list of lists, in the order of the columns."""
    values = []
    for column, pages in zip(plan.columns, stored):
        count = plan.domains[column.domain].get(number, 0)
        page = pages.get(number, [])
        if column.tag == CONSTANT:
            texts = [column.argument] * count
        elif column.tag == SAME:
            texts = values[column.argument]
        elif column.tag == TEXT:
            texts = page
        elif column.tag == NUMBER:
            texts = [print_number(column.argument, n) for n in page]
        elif column.tag == DICTIONARY:
            texts = dictionary_values(*dictionaries[column.argument], page, number)
        elif column.tag == SHAPES:
            texts = fill_shapes(column.argument, page, values)
        elif column.tag == ESCAPED:
            other, way = column.argument
            texts = [escape_value(text, way) for text in values[other]]
        elif column.tag == MAPPED:
            key, dictionary, table = column.argument
            page = [table[n] for n in stored[key].get(number, [])]
            texts = dictionary_values(*dictionaries[dictionary], page, number)
        elif column.tag == LIST:
            counts, elements, separator = column.argument
            texts = join_lists(numbers(plan, stored, counts, number), values[elements], separator)
        else:
            source, *computation = column.argument
            texts = computed_values(numbers(plan, stored, source, number), *computation)
        check(sum(map(len, texts)) <= BYTES_MAX, "more bytes in a row range than this reader takes")
        values.append(texts)
    return values


def numbers(plan, stored, column, number):
    """The numbers that a column, or the one it is the same as, has in a row range."""
    return stored[number_column(plan.columns, column)].get(number, [])


def dictionary_values(entries, sets, page, number):
    """The entries that a page's numbers stand for; `Damaged` where a set leaves out row range `number`."""
    for n in page:
        check(sets[n] is None or number in sets[n], "an entry in a row range that its set leaves out")
    return [entries[n] for n in page]


def fill_shapes(shapes, page, values):
    """The values of a column of shapes: `page` has the shapes' numbers, `values` those of the columns before."""
    waiting = {column: iter(values[column]) for shape in shapes for column in slots(shape)}
    texts, size = [], 0

    def part_text(part, place):
        if isinstance(part, bytes):
            return part
        return values[part.column][place] if part.aligned else next(waiting[part.column], None)

    for place, number in enumerate(page):
        parts = [part_text(part, place) for part in shapes[number]]
        check(None not in parts, "a slot takes more values than its column has")
        size += sum(map(len, parts))
        check(size <= BYTES_MAX, "more bytes in a row range than this reader takes")
        texts.append(b"".join(parts))
    check(all(next(column, None) is None for column in waiting.values()), "values that no slot takes")
    return texts


ESCAPES = (  # for each way what is replaced by what, one after the other
    ((b"\\", rb"\\"), (b'"', rb'\"'), (b"\b", rb"\b"), (b"\t", rb"\t"), (b"\n", rb"\n"), (b"\f", rb"\f"), (b"\r", rb"\r")),
    ((b'"', b'""'),),
)


def escape_value(text, way):
    """A value of an escaped column."""
    for plain, escaped in ESCAPES[way]:
        text = text.replace(plain, escaped)
    return text


def join_lists(counts, elements, separator):
    """The values of a column of lists, which take all of the elements."""
    texts, at, size = [], 0, 0
    for count in counts:
        check(count >= 0, "a list of less than no elements")
        check(count <= len(elements) - at, "a list takes more elements than there are")
        taken = elements[at : at + count]
        at += count
        size += sum(map(len, taken)) + len(separator) * max(count - 1, 0)
        check(size <= BYTES_MAX, "more bytes in a row range than this reader takes")
        texts.append(separator.join(taken))
    check(at == len(elements), "elements that no list takes")
    return texts


def computed_values(source, divisor, addend, layout):
    """What the numbers print as that are computed from those of another column."""
    computed = [wrap_i64(number // divisor + addend) for number in source]
    check(all(can_print(layout, number) for number in computed), "a number that its type cannot print")
    return [print_number(layout, number) for number in computed]


# --- records.md ---


def timestamps(plan, stored, number, rows):
    """The timestamps of a row range, as a list of i64; the slots of its lines must have been filled without error."""
    roots, lines = plan.roots, plan.columns[plan.roots.lines]
    explicit = iter(numbers(plan, stored, roots.explicit, number))
    sources = {column: numbers(plan, stored, column, number) for column, _, _ in roots.derived.values()}
    times, taken = [], dict.fromkeys(sources, 0)
    for row in range(rows):
        shape = stored[roots.lines][number][row] if lines.tag == SHAPES else None
        if shape in roots.derived:
            column, multiplier, addend = roots.derived[shape]
            times.append(wrap_i64(sources[column][taken[column]] * multiplier + addend))
        else:
            times.append(next(explicit, None))
            check(times[-1] is not None, "fewer explicit timestamps than rows that need one")
        for column in slots(lines.argument[shape]) if sources else []:
            taken[column] = taken.get(column, 0) + 1
    check(next(explicit, None) is None, "more explicit timestamps than rows that need one")
    return times


STRING = rb'"((?:[^"\\\x00-\x1f]|\\["\\]|\\u00[01][0-9a-f])*)"'
PAIR = re.compile(STRING + rb":" + STRING)
ESCAPE = re.compile(rb"\\(?:u00(..)|(.))")


def read_labels(stored):
    """The stored form of labels as a list of (name, value)."""
    what = "labels in no stored form"
    if not stored:
        return []
    check(stored[:1] == b"{" and stored[-1:] == b"}", what)
    labels, at = [], 1
    while True:
        pair = PAIR.match(stored, at)
        check(pair, what)
        labels.append(tuple(ESCAPE.sub(unescape, text) for text in pair.groups()))
        at = pair.end() + 1
        if stored[at - 1 : at] != b",":
            break
    check(at == len(stored), what)
    check(is_utf8(stored), what)
    check(all(a[0] < b[0] for a, b in zip(labels, labels[1:])), "names of labels do not ascend")
    return labels


def unescape(match):
    return match[2] or bytes.fromhex(match[1].decode())


def is_utf8(text):
    try:
        text.decode()
        return True
    except UnicodeDecodeError:
        return False


def check_format(stored):
    """`Damaged` unless the bytes are the stored form of a format."""
    names = stored[4:]
    csv = stored[:3] == b"csv" and len(stored) > 3 and names[-1:] in (b"", b"\0") and is_utf8(names)
    csv = csv and re.fullmatch(rb"(?:[^\x01]|\x01[01])*", names, re.DOTALL)
    check(stored in (b"text", b"json", b"logfmt") or csv, "a format in no stored form")


def read_group_records(data, group):
    """The records of a row group as a list of `Record`, in stored order; `Damaged` if it breaks a rule."""
    plan_offset = group.offset + group.frames
    root_offset = plan_offset + group.plan.stored
    with located(plan_offset):
        plan = read_plan(open_section(data, plan_offset, group.plan, "plan"))
    with located(root_offset):
        root = read_root(open_section(data, root_offset, group.root, "root"))
        check_roots(plan, root, group)
    dictionary_pieces, data_offset = read_pieces(data, group.offset, plan.dictionary_area)
    data_pieces, end = read_pieces(data, data_offset, plan.data_area)
    with located(plan_offset):
        check(end == plan_offset, "frames do not end where the plan begins")
        asked = sum(page_count(d) * (2 if d.sets else 1) for d in plan.dictionaries)
        check(len(dictionary_pieces) == asked, "another number of pieces than dictionaries have pages")
    with located(group.offset):
        dictionaries = read_dictionaries(plan, iter(dictionary_pieces), root.fences)
        stored = read_columns(plan, data_pieces)
        records = assemble(plan, root, group, dictionaries, stored)
        check_records(records, group)
    return records


def assemble(plan, root, group, dictionaries, stored):
    """Goes through the row ranges and puts the records together."""
    records, streams = [], iter(())
    for number, (rows, least, greatest) in enumerate(root.ranges):
        values = range_values(plan, dictionaries, stored, number)
        if number == 0:
            streams = row_labels(values[plan.roots.labels], numbers(plan, stored, plan.roots.stream_rows, 0), group)
        times = timestamps(plan, stored, number, rows)
        check((min(times), max(times)) == (least, greatest), "least and greatest timestamp of a row range are not those of the root")
        columns = (values[c] for c in (plan.roots.formats, plan.roots.metadata, plan.roots.lines))
        records += [Record(group.tenant, next(streams), *fields) for fields in zip(times, *columns)]
    return records


def row_labels(stored, rows, group):
    """The labels of each row, one after the other, as lists of (name, value)."""
    check(all(count > 0 for count in rows), "a stream without rows")
    check(sum(rows) == group.rows, "streams with other rows than the row group")
    labels = [read_labels(text) for text in stored]
    check(stored[0] == group.first_labels, "the first stream has other labels than the footer says")
    check(all(a < b for a, b in zip(labels, labels[1:])), "streams do not ascend")
    return (pairs for pairs, count in zip(labels, rows) for _ in range(count))


def check_records(records, group):
    """`Damaged` where records are out of order, or other than the footer says."""
    for form in {record.format for record in records}:
        check_format(form)
    for before, record in zip(records, records[1:]):
        check(before.labels is not record.labels or before.timestamp <= record.timestamp, "timestamps descend within a stream")
    check(sum(len(record.line) for record in records) == group.line_bytes, "lines have other bytes than the footer says")
    times = [record.timestamp for record in records]
    check((min(times), max(times)) == (group.least, group.greatest), "least and greatest timestamp are not those of the footer")


# --- Output ---


def escape(text, also=b""):
    """Printable ASCII as the golden files have it: other bytes, backslashes and those of `also` as `\\xHH`."""
    return b"".join(bytes([b]) if 0x20 <= b <= 0x7E and b != 0x5C and b not in also else b"\\x%02x" % b for b in text)


def dump(record):
    """A record as a line of a golden `.expected` file, without the line's end."""
    labels = b",".join(escape(name, b"=,") + b"=" + escape(value, b"=,") for name, value in record.labels)
    texts = (escape(text) for text in (record.format, record.metadata, record.line))
    return b"\t".join((record.tenant, labels, b"%d" % record.timestamp, *texts))


def read_segment(data):
    """Yields the records of each row group of a segment (bytes), as lists of `Record`; raises `Damaged`."""
    for group in read_footer(data):
        yield read_group_records(data, group)


def main(arguments):
    """Prints a segment; ends the process with one line and code 1 where that fails."""
    names = [a for a in arguments if a != "--records"]
    if len(names) != 1 or names[0].startswith("-"):
        sys.exit("usage: haystore_reader.py [--records] SEGMENT")
    show = dump if "--records" in arguments else lambda record: record.line
    try:
        with open(names[0], "rb") as file:
            data = file.read()
        for records in read_segment(data):
            sys.stdout.buffer.writelines(show(record) + b"\n" for record in records)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # whoever reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Damaged as error:
        sys.exit(f"{names[0]}: {error}")
    except OSError as error:
        sys.exit(f"{names[0]}: {error.strerror}")
    except MemoryError:
        sys.exit(f"{names[0]}: needs more memory than there is")


if __name__ == "__main__":
    main(sys.argv[1:])

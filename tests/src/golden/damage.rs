//! Segments that are wrong in one way each. Most have right checksums, so that the rule behind them is what fails.

use super::{EFFORT, segment_of};
use crate::random::{Random, START_NS};
use crate::record::Rec;
use haystore::column::plan::{Area, Computed, Escape, Kind, List, Mapping, Plan};
use haystore::encoding::typed::{FixedClass, Type};
use haystore::segment::{GroupInfo, MAGIC, RowGroupMeta, Rows, SegmentWriter, encode_row_group, read_footer};
use haystore::shape::{Part, Span};
use haystore::wire::Reader;
use haystore::{Format, Labels, Tenant};

/// Damage that the engine does not see when it reads, since it would have to look at more than it needs.
pub const UNSEEN_BY_ENGINE: &[&str] = &[
    "dictionary-twice",
    "dictionary-unsorted",
    "footer-two-frames",
    "header-magic",
    "header-version",
    "meta-labels",
    "meta-line-bytes",
    "meta-streams",
    "meta-times",
    "plan-number-of-no-text",
    "root-fence",
    "root-times",
    "rows-stream-twice",
    "rows-streams-unordered",
    "rows-times-unordered",
];

const TRAILER_BYTES: usize = 24;

/// Name and bytes of each damaged segment.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    let mut out = plain();
    out.extend(resealed());
    out.extend(with_plan());
    out.extend(with_pieces());
    out.extend(with_rows());
    out
}

/// A small segment with shapes, numbers, a hex and a text dictionary, explicit timestamps.
fn base() -> Vec<u8> {
    let mut random = Random::new(9);
    let line = |i: i64| format!("job {:08x} of \"{}\" took {} ms", random.0.roll() as u32, ["ann", "bob"][(i % 2) as usize], i * i % 97);
    let mut line = line;
    let records: Vec<Rec> = (0..100).map(|i| Rec::plain(START_NS + i * i, &Labels::default(), line(i))).collect();
    segment_of(&[(Tenant::default(), records)], 1 << 20, EFFORT)
}

fn infos(segment: &[u8]) -> Vec<GroupInfo> {
    read_footer("base", segment.len() as u64, segment).unwrap().unwrap().groups
}

/// Bytes cut, lost or turned over; no checksum mended.
fn plain() -> Vec<(&'static str, Vec<u8>)> {
    let base = base();
    let len = base.len();
    let info = &infos(&base)[0];
    let flip = |at: usize, mask: u8| {
        let mut bytes = base.clone();
        bytes[at] ^= mask;
        bytes
    };
    let plan_at = (info.offset + info.meta.frames_len) as usize;
    let root_at = plan_at + info.meta.plan.stored as usize;
    let footer_at = root_at + info.meta.root.stored as usize;
    vec![
        ("no-bytes", Vec::new()),
        ("too-short", base[..30].to_vec()),
        ("truncated", base[..len - 100].to_vec()),
        ("header-magic", flip(0, 1)),
        ("header-version", flip(6, 3)),
        ("trailer-magic", flip(len - 8, 1)),
        ("trailer-version", flip(len - 2, 3)),
        ("trailer-checksum", flip(len - TRAILER_BYTES, 1)),
        ("footer-checksum", flip(footer_at + 5, 1)),
        ("plan-checksum", flip(plan_at + 9, 16)),
        ("root-checksum", flip(root_at + 9, 16)),
        ("frame-checksum", flip(8 + 20, 16)),
    ]
}

/// The segment with a footer of these bytes, stored as `stored`, under a right trailer that says `stored_len` and `raw_len`.
fn seal(body: &[u8], stored: &[u8], stored_len: usize, raw_len: usize) -> Vec<u8> {
    let mut out = [body, stored].concat();
    let mut trailer = Vec::new();
    trailer.extend_from_slice(&(stored_len as u32).to_le_bytes());
    trailer.extend_from_slice(&(raw_len as u32).to_le_bytes());
    trailer.extend_from_slice(&crc32fast::hash(stored).to_le_bytes());
    let crc = crc32fast::hash(&[&trailer[..], MAGIC].concat());
    trailer.extend_from_slice(&crc.to_le_bytes());
    trailer.extend_from_slice(MAGIC);
    out.extend_from_slice(&trailer);
    out
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

/// A wrong footer or trailer with right checksums.
fn resealed() -> Vec<(&'static str, Vec<u8>)> {
    let base = base();
    let info = infos(&base).remove(0);
    let body_len = 8 + info.meta.stored_bytes() as usize;
    let (body, footer) = (&base[..body_len], &base[body_len..base.len() - TRAILER_BYTES]);
    let raw = zstd::stream::decode_all(footer).unwrap();
    let with_footer = |raw: &[u8]| {
        let stored = pack(raw);
        seal(body, &stored, stored.len(), raw.len())
    };
    let mut other_tenant = raw.clone();
    other_tenant[2] = b'/';
    let twice = [footer, &pack(b"")].concat();
    let tail = [&raw[..], b"\0"].concat();
    let mut gap = body.to_vec();
    gap.push(0);
    let mut out = vec![
        ("footer-longer-than-segment", seal(body, footer, base.len(), raw.len())),
        ("footer-no-zstd", seal(body, b"no frame", 8, raw.len())),
        ("footer-other-length", seal(body, footer, footer.len(), raw.len() + 1)),
        ("footer-two-frames", seal(body, &twice, twice.len(), raw.len())),
        ("footer-bytes-left", with_footer(&tail)),
        ("footer-bytes-missing", with_footer(&raw[..raw.len() - 1])),
        ("footer-tenant", with_footer(&other_tenant)),
        ("footer-gap", seal(&gap, footer, footer.len(), raw.len())),
        // The number of row groups, 1, in two bytes.
        ("footer-number-longer", with_footer(&[&[0x81, 0], &raw[1..]].concat())),
        ("footer-many-groups", with_footer(&[0xff, 0xff, 0xff, 0xff, 0x0f])),
    ];
    let mut with_meta = |name, change: &dyn Fn(&mut RowGroupMeta)| {
        let mut meta = info.meta.clone();
        change(&mut meta);
        let mut writer = SegmentWriter::default();
        writer.add_encoded(&info.tenant, meta, &body[8..]);
        out.push((name, writer.finish().unwrap().0));
    };
    with_meta("meta-rows", &|m| m.rows += 1);
    with_meta("meta-line-bytes", &|m| m.line_bytes += 1);
    with_meta("meta-times", &|m| m.times = *m.times.start() - 1..=*m.times.end());
    with_meta("meta-streams", &|m| m.streams += 1);
    with_meta("meta-labels", &|m| m.labels_min = Labels::new([("a", "b")]));
    with_meta("meta-frames-length", &|m| m.frames_len += 1);
    with_meta("meta-plan-length", &|m| m.plan.raw -= 1);
    out
}

/// A row group taken apart.
struct Opened {
    info: GroupInfo,
    frames: Vec<u8>,
    plan: Plan,
    /// What follows the columns and areas in the plan's bytes.
    roots: Vec<u8>,
    root: Vec<u8>,
}

fn open() -> Opened {
    open_group(&base())
}

/// The first row group of a segment, taken apart.
fn open_group(segment: &[u8]) -> Opened {
    let info = infos(segment).remove(0);
    let bytes = &segment[8..8 + info.meta.stored_bytes() as usize];
    let (frames, rest) = bytes.split_at(info.meta.frames_len as usize);
    let (plan, root) = rest.split_at(info.meta.plan.stored as usize);
    let plan = zstd::stream::decode_all(plan).unwrap();
    let root = zstd::stream::decode_all(root).unwrap();
    let mut reader = Reader::new(&plan);
    let parsed = Plan::decode(&mut reader).unwrap();
    Opened { info, frames: frames.to_vec(), plan: parsed, roots: reader.rest().to_vec(), root }
}

impl Opened {
    fn plan_bytes(&self) -> Vec<u8> {
        let mut raw = Vec::new();
        self.plan.encode(&mut raw);
        raw.extend_from_slice(&self.roots);
        raw
    }

    /// The segment again, its checksums right.
    fn close(self) -> Vec<u8> {
        let raw = self.plan_bytes();
        self.close_with(&raw)
    }

    /// As [`Opened::close`], with another plan.
    fn close_with(mut self, raw: &[u8]) -> Vec<u8> {
        let (plan, root) = (pack(raw), pack(&self.root));
        let meta = &mut self.info.meta;
        meta.frames_len = self.frames.len() as u64;
        (meta.plan.stored, meta.plan.raw, meta.plan.crc) = (plan.len() as u32, raw.len() as u32, crc32fast::hash(&plan));
        (meta.root.stored, meta.root.raw, meta.root.crc) = (root.len() as u32, self.root.len() as u32, crc32fast::hash(&root));
        let mut writer = SegmentWriter::default();
        writer.add_encoded(&self.info.tenant, self.info.meta.clone(), &[self.frames, plan, root].concat());
        writer.finish().unwrap().0
    }

    fn find(&self, wanted: impl Fn(&Kind) -> bool) -> usize {
        self.plan.columns.iter().position(|c| wanted(&c.kind)).unwrap()
    }
}

/// The first row group of `segment` with one byte changed behind all checksums: in the plan, the root, or a frame's contents.
pub fn change_behind_checksums(segment: &[u8], random: &mut Random) -> Vec<u8> {
    let mut opened = open_group(segment);
    let change = |bytes: &mut [u8], random: &mut Random| {
        if !bytes.is_empty() {
            let at = random.below(bytes.len());
            bytes[at] = if random.once_in(2) { bytes[at] ^ 1 << random.below(8) } else { random.below(256) as u8 };
        }
    };
    match random.below(4) {
        0 => {
            let mut raw = opened.plan_bytes();
            change(&mut raw, random);
            return opened.close_with(&raw);
        }
        1 => change(&mut opened.root, random),
        _ => {
            let frames: Vec<_> = opened.plan.dictionary_area.frames.iter_mut().chain(&mut opened.plan.data_area.frames).collect();
            let changed = random.below(frames.len().max(1));
            let (mut old, mut new) = (&opened.frames[..], Vec::new());
            for (index, frame) in frames.into_iter().enumerate() {
                let (stored, rest) = old.split_at(frame.stored as usize);
                old = rest;
                let mut contents = if frame.compressed { zstd::stream::decode_all(stored).unwrap() } else { stored.to_vec() };
                if index == changed {
                    change(&mut contents, random);
                }
                (frame.stored, frame.compressed, frame.crc) = (contents.len() as u32, false, crc32fast::hash(&contents));
                new.extend(contents);
            }
            opened.frames = new;
        }
    }
    opened.close()
}

/// A wrong plan or root.
fn with_plan() -> Vec<(&'static str, Vec<u8>)> {
    let mut out = Vec::new();
    let mut with = |name, change: &dyn Fn(&mut Opened)| {
        let mut opened = open();
        change(&mut opened);
        out.push((name, opened.close()));
    };
    let number = |o: &Opened| o.find(|k| matches!(k, Kind::Number(_)));
    with("plan-bytes-left", &|o| o.roots.push(0));
    with("plan-bytes-missing", &|o| o.roots.truncate(o.roots.len() - 1));
    with("plan-no-such-column", &|o| o.roots[0] = 100);
    with("plan-column-of-itself", &|o| o.plan.columns[3].kind = Kind::Escaped(3, Escape::Json));
    let mapped = |o: &mut Opened, key_kind: &dyn Fn(&Kind) -> bool, table: Vec<u32>| {
        let key = o.find(key_kind) as u32;
        let last = o.plan.columns.iter().rposition(|c| matches!(c.kind, Kind::Dictionary(_))).unwrap();
        let dictionary = o.plan.columns[last].kind.dictionary().unwrap();
        o.plan.columns[last].kind = Kind::Mapped(Mapping { key, dictionary, table });
    };
    with("plan-mapped-by-numbers", &|o| mapped(o, &|k| matches!(k, Kind::Number(_)), vec![0]));
    with("plan-mapped-by-short-table", &|o| mapped(o, &|k| matches!(k, Kind::Dictionary(_)), Vec::new()));
    with("plan-mapped-to-no-entry", &|o| mapped(o, &|k| matches!(k, Kind::Dictionary(_)), vec![9999]));
    with("plan-slot-of-later-column", &|o| {
        let at = o.find(|k| matches!(k, Kind::Shapes(_)));
        o.plan.columns[at].kind = Kind::Shapes(vec![vec![Part::Slot(at as u32)]]);
    });
    with("plan-same-of-other-domain", &|o| {
        let last = o.plan.columns.len() - 1;
        o.plan.columns[last].kind = Kind::Same(0);
    });
    with("plan-escaped-of-other-domain", &|o| {
        let last = o.plan.columns.len() - 2;
        o.plan.columns[last].kind = Kind::Escaped(0, Escape::Doubled);
    });
    with("plan-aligned-of-other-domain", &|o| {
        let at = o.find(|k| matches!(k, Kind::Shapes(_)));
        let column = (0..at).find(|&c| o.plan.columns[c].domain != o.plan.columns[at].domain).unwrap();
        o.plan.columns[at].kind = Kind::Shapes(vec![vec![Part::Aligned(column as u32)]]);
    });
    // A column of as many numbers as there are rows, and the last one of rows, which is none of numbers.
    let list = |o: &mut Opened, counts: &dyn Fn(&Opened) -> usize| {
        let counts = counts(o) as u32;
        let at = o.plan.columns.iter().rposition(|c| c.domain == o.plan.columns[counts as usize].domain).unwrap();
        o.plan.columns[at].kind = Kind::List(List { counts, elements: counts, separator: b",".to_vec() });
    };
    with("plan-list-of-too-few", &|o| list(o, &number));
    with("plan-list-without-counts", &|o| list(o, &|o| o.find(|k| matches!(k, Kind::Dictionary(_)))));
    let computed = |o: &mut Opened, source: usize, divisor: i64, type_: Type| {
        let at = o.plan.columns.iter().rposition(|c| c.domain == o.plan.columns[source].domain).unwrap();
        o.plan.columns[at].kind = Kind::Computed(Computed { source: source as u32, divisor, addend: -1, type_ });
    };
    with("plan-computed-of-no-numbers", &|o| computed(o, o.find(|k| matches!(k, Kind::Dictionary(_))), 1, Type::Int));
    with("plan-computed-by-nothing", &|o| computed(o, number(o), 0, Type::Int));
    with("plan-computed-bad-type", &|o| computed(o, number(o), 1, Type::ShortDecimal { scale: 18, point: true }));
    with("plan-no-such-domain", &|o| o.plan.columns[0].domain = 50);
    with("plan-bad-type", &|o| {
        let at = number(o);
        o.plan.columns[at].kind = Kind::Number(Type::Padded(19));
    });
    with("plan-number-of-no-text", &|o| {
        let at = number(o);
        o.plan.columns[at].kind = Kind::Number(Type::Padded(1));
    });
    with("plan-bad-class", &|o| o.plan.dictionaries[0].class = Some(FixedClass::Hex { width: 3, upper: false }));
    with("plan-other-class", &|o| o.plan.dictionaries[0].class = Some(FixedClass::Uuid));
    with("plan-empty-pages", &|o| o.plan.dictionaries[0].page_entries = 0);
    with("plan-more-entries", &|o| o.plan.dictionaries[0].entries += 1);
    with("plan-page-bytes", &|o| o.plan.dictionaries[1].page_bytes_max = 2);
    with("plan-piece-missing", &|o| o.plan.data_area.pieces.truncate(o.plan.data_area.pieces.len() - 1));
    with("plan-piece-longer", &|o| o.plan.data_area.pieces[0].0 += 1);
    with("plan-frame-missing", &|o| o.plan.data_area.frames.truncate(o.plan.data_area.frames.len() - 1));
    with("plan-frame-longer", &|o| o.plan.data_area.frames[0].stored += 1);
    with("plan-frame-compressed", &|o| o.plan.data_area.frames[0].compressed ^= true);
    with("plan-more-values", &|o| o.plan.domains[0].ends[0] += 1);
    with("plan-two-ranges", &|o| {
        o.plan.ranges = 2;
        o.plan.domains.iter_mut().for_each(|d| d.ends.push(d.ends[0]));
    });
    with("root-bytes-left", &|o| o.root.push(0));
    with("root-rows", &|o| o.root[1] += 1);
    with("root-times", &|o| o.root[2] ^= 2);
    with("root-fence", &|o| {
        let last = o.root.len() - 1;
        o.root[last] = 0xff;
    });
    out
}

/// Changes piece `piece` of an area of frames that all share; `at` is the area's first byte in the frames.
fn edit(frames: &mut Vec<u8>, area: &mut Area, at: usize, piece: usize, change: &dyn Fn(&mut Vec<u8>)) {
    let hard = area.pieces[piece].1;
    // Frames are numbered as they are opened, and there are at most two: one for soft, one for hard pieces.
    let frame = usize::from(area.pieces[0].1 != hard);
    let start = at + area.frames[..frame].iter().map(|f| f.stored as usize).sum::<usize>();
    let end = start + area.frames[frame].stored as usize;
    let stored = frames[start..end].to_vec();
    let contents = if area.frames[frame].compressed { zstd::stream::decode_all(&stored[..]).unwrap() } else { stored };
    let first: usize = area.pieces[..piece].iter().filter(|p| p.1 == hard).map(|p| p.0 as usize).sum();
    let mut bytes = contents[first..first + area.pieces[piece].0 as usize].to_vec();
    change(&mut bytes);
    let new = [&contents[..first], &bytes, &contents[first + area.pieces[piece].0 as usize..]].concat();
    area.pieces[piece].0 = bytes.len() as u32;
    (area.frames[frame].stored, area.frames[frame].compressed) = (new.len() as u32, false);
    area.frames[frame].crc = crc32fast::hash(&new);
    frames.splice(start..end, new);
}

/// Wrong pages.
fn with_pieces() -> Vec<(&'static str, Vec<u8>)> {
    let mut out = Vec::new();
    let mut data = |name, wanted: &dyn Fn(&Kind) -> bool, change: &dyn Fn(&mut Vec<u8>)| {
        let mut o = open();
        let column = o.find(wanted);
        let piece = o.plan.page_order().iter().position(|p| p.1 as usize == column).unwrap();
        let at = o.plan.dictionary_area.frames.iter().map(|f| f.stored as usize).sum();
        edit(&mut o.frames, &mut o.plan.data_area, at, piece, change);
        out.push((name, o.close()));
    };
    let number = |k: &Kind| matches!(k, Kind::Number(_));
    let shapes = |k: &Kind| matches!(k, Kind::Shapes(_));
    let dictionary = |k: &Kind| matches!(k, Kind::Dictionary(_));
    data("page-no-bytes", &number, &|b| b.clear());
    data("page-unknown-form", &number, &|b| b[0] = 99);
    data("page-bytes-left", &number, &|b| b.push(0));
    data("page-bytes-missing", &number, &|b| b.truncate(b.len() - 1));
    data("page-long-number", &shapes, &|b| *b = [&[0][..], &[0xff; 11]].concat());
    data("page-no-such-shape", &shapes, &|b| *b = vec![0, 7]);
    data("page-no-such-entry", &dictionary, &|b| *b = vec![0, 0xff, 0x7f]);
    data("page-plane-width", &dictionary, &|b| *b = vec![2, 9, 0]);
    data("page-planes-missing", &dictionary, &|b| *b = vec![2, 1, 0, 1, 1]);
    data("page-damaged-pco", &number, &|b| *b = vec![4, 0, 4, 1, 0xff, 0xff, 0xff]);
    data("page-other-pco-version", &number, &|b| *b = vec![5, 0, 9, 0, 0, 0, 0]);
    let mut entries = |name, piece: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut o = open();
        edit(&mut o.frames, &mut o.plan.dictionary_area, 0, piece, change);
        out.push((name, o.close()));
    };
    // The text dictionary has two entries: prefix lengths, then the lengths and bytes of what follows.
    entries("dictionary-unsorted", 1, &|b| *b = vec![2, 0, 0, 2, 0, 3, b'b', b'o', b'b', b'a', b'n', b'n']);
    entries("dictionary-twice", 1, &|b| *b = vec![2, 0, 0, 2, 0, 3, b'a', b'n', b'n', b'a', b'n', b'n']);
    entries("dictionary-prefix", 1, &|b| *b = vec![2, 0, 1, 2, 0, 3, b'a', b'n', b'n', b'b', b'o', b'b']);
    entries("dictionary-lengths", 1, &|b| *b = vec![2, 0, 0, 2, 0, 100, b'a', b'n', b'n', b'b', b'o', b'b']);
    out
}

/// Rows that break the order, or page sets that hide an entry.
fn with_rows() -> Vec<(&'static str, Vec<u8>)> {
    let rows = |timestamps: &[i64], streams: Vec<(Labels, u32)>| {
        let mut rows = Rows { timestamps: timestamps.to_vec(), streams, formats: vec![Format::Text], ..Rows::default() };
        for i in 0..timestamps.len() as u32 {
            rows.lines.push(b'a' + i as u8);
            rows.line_spans.push(Span { at: i, len: 1 });
            rows.metadata_spans.push(Span { at: 0, len: 0 });
            rows.row_formats.push(0);
        }
        let mut bytes = Vec::new();
        let meta = encode_row_group(&rows, EFFORT, &mut bytes).unwrap();
        let mut writer = SegmentWriter::default();
        writer.add_encoded(&Tenant::default(), meta, &bytes);
        writer.finish().unwrap().0
    };
    let (a, b) = (Labels::new([("a", "1")]), Labels::new([("b", "1")]));
    vec![
        ("rows-times-unordered", rows(&[1, 3, 2], vec![(a.clone(), 3)])),
        ("rows-streams-unordered", rows(&[1, 2, 3], vec![(b.clone(), 1), (a.clone(), 2)])),
        ("rows-stream-twice", rows(&[1, 2, 3], vec![(a.clone(), 1), (a, 2)])),
    ]
}

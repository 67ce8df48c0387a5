use super::super::{InputFormat, RecordReader, TimeRules, parse_body};
use super::*;
use proptest::prelude::*;
use std::io::Read;

const NOW: i64 = 1_772_323_200_000_000_000;

fn options(format: InputFormat) -> ReadOptions {
    ReadOptions { format, ..ReadOptions::new(TimeRules::new(NOW)) }
}

type Row = (i64, Vec<u8>, Format);

fn rows(batches: &[Batch]) -> Vec<Row> {
    batches.iter().flat_map(|b| b.iter().map(|r| (r.timestamp, r.line.to_vec(), r.format.clone()))).collect()
}

fn read(data: &[u8], options: &ReadOptions) -> (Vec<Row>, Report) {
    let (batches, report) = parse_body(data, options.clone()).unwrap();
    (rows(&batches), report)
}

fn lines_of(data: &[u8], format: InputFormat) -> Vec<String> {
    read(data, &options(format)).0.into_iter().map(|(_, line, _)| String::from_utf8_lossy(&line).into_owned()).collect()
}

fn seconds_of(data: &[u8], options: &ReadOptions) -> Vec<i64> {
    read(data, options).0.iter().map(|row| row.0.div_euclid(1_000_000_000)).collect()
}

/// Joined lines, as `raw` output gives them.
fn joined(rows: &[Row]) -> Vec<u8> {
    rows.iter().map(|row| &row.1[..]).collect::<Vec<_>>().join(&b'\n')
}

fn without_last_newline(data: &[u8]) -> &[u8] {
    data.strip_suffix(b"\n").unwrap_or(data)
}

/// Gives out pieces of the sizes asked for, over and over.
struct Pieces<'a> {
    data: &'a [u8],
    sizes: Vec<usize>,
    turn: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()].min(buffer.len());
        self.turn += 1;
        self.data.take(size as u64).read(buffer).inspect(|&n| self.data = &self.data[n..])
    }
}

/// Pushes `data` in pieces, a new parser from stored state after every batch.
fn push_in_pieces(data: &[u8], options: &ReadOptions, sizes: &[usize]) -> (Vec<Row>, Counts) {
    let mut parser = Parser::new(options.clone());
    let (mut out, mut at, mut given, mut turn) = (Vec::new(), 0, 0, 0);
    let mut batch = Batch::new();
    loop {
        let (used, step) = parser.parse(&data[at..given], given == data.len(), &mut batch).unwrap();
        at += used;
        match step {
            Step::Full => {
                let state = ReaderState::from_bytes(&parser.state().to_bytes().unwrap()).unwrap();
                assert_eq!(&state, parser.state());
                assert_eq!(state.position() as usize, at);
                out.append(&mut rows(&[std::mem::take(&mut batch)]));
                parser = Parser::resume(options.clone(), state);
            }
            Step::More if given == data.len() => break,
            Step::More => {
                given = (given + sizes[turn % sizes.len()]).min(data.len());
                turn += 1;
            }
        }
    }
    out.append(&mut rows(&[batch]));
    assert_eq!(parser.state().position(), data.len() as u64);
    (out, parser.state().counts)
}

fn any_format() -> impl Strategy<Value = InputFormat> {
    prop_oneof![Just(InputFormat::Auto), Just(InputFormat::Lines), Just(InputFormat::Ndjson), Just(InputFormat::Csv)]
}

fn any_input() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        any::<Vec<u8>>(),
        "[a\",\r]{0,12}".prop_map(String::into_bytes),
        Just(b"\"open, and\nclosed\",b,c".to_vec()),
        Just(b"{\"ts\":1700000000,\"a\":[1,{\"b\":\"x\\\"y\"}]}".to_vec()),
        (0..60u32).prop_map(|s| format!("2015-05-13 23:39:{s:02},host,value").into_bytes()),
        (0..60u32).prop_map(|s| format!("Oct 11 22:14:{s:02} host app: value").into_bytes()),
        Just(vec![b'x'; 300]),
    ];
    (prop::collection::vec(line, 0..40), any::<bool>()).prop_map(|(lines, newline)| {
        let mut data = lines.join(&b'\n');
        if newline {
            data.push(b'\n');
        }
        data
    })
}

proptest! {
    #[test]
    fn neither_pieces_nor_restarts_change_a_record(
        data in any_input(),
        format in any_format(),
        sizes in prop::collection::vec(1..200usize, 1..5),
        batch_bytes in 1..400usize,
        line_bytes_max in prop_oneof![Just(250usize), Just(20), Just(1 << 20)],
        is_body: bool,
    ) {
        let odd_lines = if is_body { OddLines::Reject } else { OddLines::Keep };
        let options = ReadOptions { batch_bytes, line_bytes_max, odd_lines, ..options(format) };
        let (whole, report) = read(&data, &options);
        let (pieces, counts) = push_in_pieces(&data, &options, &sizes);
        prop_assert_eq!(&whole, &pieces);
        prop_assert_eq!(report.counts, counts);
        let mut reader = RecordReader::new(Pieces { data: &data, sizes, turn: 0 }, options);
        let mut batches = Vec::new();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
        prop_assert_eq!(rows(&batches), whole);
        prop_assert_eq!(reader.report(), report);
    }

    #[test]
    fn joined_records_are_the_input(data in any_input(), format in any_format()) {
        let (rows, report) = read(&data, &options(format));
        prop_assert_eq!(joined(&rows), without_last_newline(&data));
        prop_assert_eq!(report.counts.rejected, 0);
        prop_assert_eq!(report.counts.records, rows.len() as u64);
    }

    #[test]
    fn any_bytes_are_no_state(bytes: Vec<u8>) {
        prop_assert!(ReaderState::from_bytes(&bytes).is_err());
    }
}

#[test]
fn lines_keep_their_bytes() {
    let lines = |data: &[u8]| lines_of(data, InputFormat::Lines);
    assert_eq!(lines(b""), [""; 0]);
    assert_eq!(lines(b"\n"), [""]);
    assert_eq!(lines(b"a\r\n\r\n\nb"), ["a\r", "\r", "", "b"]);
    assert_eq!(lines("\u{feff}a\n\u{feff}b\n".as_bytes()), ["\u{feff}a", "\u{feff}b"]);
    let odd: &[u8] = b"\xff\xfea\0\n\0b\0\n\0\0\x80";
    let (rows, _) = read(odd, &options(InputFormat::Auto));
    assert_eq!(rows.iter().map(|row| &row.1[..]).collect::<Vec<_>>(), [&b"\xff\xfea\0"[..], b"\0b\0", b"\0\0\x80"]);
    assert_eq!(joined(&rows), odd);
}

#[test]
fn a_line_without_a_time_takes_the_last_one() {
    let data = b"start\n1970-01-01 00:00:10 a\n  at b\n\n1970-01-01 00:00:05 c\nd";
    let at = |options: &ReadOptions| seconds_of(data, options);
    assert_eq!(at(&options(InputFormat::Lines)), [10, 10, 10, 10, 5, 5]);
    assert_eq!(read(data, &options(InputFormat::Lines)).1.counts.untimed, 4);
    let one = ReadOptions { timestamps: Timestamps::All(7_000_000_000), ..options(InputFormat::Lines) };
    assert_eq!(at(&one), [7; 6]);
    assert_eq!(seconds_of(b"a\nb", &options(InputFormat::Lines)), [NOW / 1_000_000_000; 2]);
    assert_eq!(seconds_of("\u{feff}1000000000 a".as_bytes(), &options(InputFormat::Lines)), [1_000_000_000]);
}

#[test]
fn ndjson_of_a_file_loses_nothing() {
    let data = b"{\"time\":1000000000}\r\n\n[1]\nstarted 2001-09-09 01:46:41\n{\"time\":";
    let (rows, report) = read(data, &options(InputFormat::Ndjson));
    assert_eq!(joined(&rows), data);
    assert_eq!((report.counts.odd, report.counts.rejected), (2, 0));
    let formats: Vec<&Format> = rows.iter().map(|row| &row.2).collect();
    assert_eq!(formats, [&Format::Json, &Format::Text, &Format::Json, &Format::Text, &Format::Text]);
    let seconds: Vec<i64> = rows.iter().map(|row| row.0 / 1_000_000_000).collect();
    assert_eq!(seconds, [1_000_000_000, 1_000_000_000, 1_000_000_000, 1_000_000_001, 1_000_000_001]);
    assert_eq!(read("\u{feff}{\"time\":1000000000}".as_bytes(), &options(InputFormat::Ndjson)).1.counts.odd, 0);
}

#[test]
fn ndjson_of_a_body_names_its_bad_lines() {
    let body = b"{\"a\":1}\n\n{\"a\":}\n \r\n{\"b\":2}\nx";
    let options = ReadOptions { odd_lines: OddLines::Reject, ..options(InputFormat::Ndjson) };
    let (rows, report) = read(body, &options);
    assert_eq!(rows.iter().map(|row| &row.1[..]).collect::<Vec<_>>(), [b"{\"a\":1}", b"{\"b\":2}"]);
    let error = |line, message: &str| RecordError { line, message: message.to_string() };
    assert_eq!(
        report.errors,
        [error(3, "not JSON: wanted a value at byte 5 of the line"), error(6, "not JSON: wanted a value at byte 0 of the line")]
    );
    assert_eq!((report.counts.records, report.counts.rejected, report.counts.odd), (2, 2, 0));
    let many = "x\n".repeat(ERRORS_KEPT_MAX + 5);
    let report = read(many.as_bytes(), &options).1;
    assert_eq!((report.errors.len(), report.counts.rejected), (ERRORS_KEPT_MAX, 105));
}

#[test]
fn a_table_keeps_header_and_inner_newlines() {
    let data = "\u{feff}id,when,what\r\n1,1000000001,\"a\nb\"\r\n2,1000000002,\"stray\n3,1000000003,c\n\n4,soon,d\n";
    let (rows, report) = read(data.as_bytes(), &options(InputFormat::Csv));
    assert_eq!(joined(&rows), without_last_newline(data.as_bytes()));
    assert_eq!(rows[1].1, b"1,1000000001,\"a\nb\"\r");
    let format = Format::Csv { delimiter: b',', columns: ["id", "when", "what"].map(String::from).to_vec() };
    assert!(rows.iter().all(|row| row.2 == format));
    let seconds: Vec<i64> = rows.iter().map(|row| row.0 / 1_000_000_000 - 1_000_000_000).collect();
    assert_eq!(seconds, [1, 1, 2, 3, 3, 3]);
    assert_eq!(report.counts.records, 6);
}

#[test]
fn a_repeated_header_names_the_columns_and_is_no_record() {
    let options = ReadOptions { header: CsvHeader::Repeated, delimiter: Some(b','), ..options(InputFormat::Csv) };
    // By looking, neither the header nor the delimiter would be found.
    let data = "\"a\n b\",2,c\r\n1,x;y;z,3\n\n4,5,6\n";
    let (rows, report) = read(data.as_bytes(), &options);
    assert_eq!(joined(&rows), b"1,x;y;z,3\n\n4,5,6");
    let format = Format::Csv { delimiter: b',', columns: ["a\n b", "2", "c"].map(String::from).to_vec() };
    assert!(rows.iter().all(|row| row.2 == format), "{rows:?}");
    assert_eq!(report.counts.records, 3);
    let (rows, _) = read(data.as_bytes(), &ReadOptions { header: CsvHeader::None, ..options.clone() });
    assert_eq!((rows.len(), &rows[0].2), (4, &Format::Csv { delimiter: b',', columns: vec![] }));
    let (rows, _) = read(b"just a line, and more\n", &ReadOptions { format: InputFormat::Lines, ..options });
    assert_eq!(rows.len(), 1, "only of separated values");
}

#[test]
fn the_header_is_the_first_record_that_is_not_blank() {
    let head = |text: &str, whole| crate::ingest::csv_header(text.as_bytes(), whole, b',').map(|h| String::from_utf8(h.to_vec()).unwrap());
    assert_eq!(head("\u{feff}\n \r\na,\"b\nc\"\r\n1,2\n", true).unwrap(), "a,\"b\nc\"\r");
    assert_eq!(head("a,b", true).unwrap(), "a,b");
    assert_eq!(head("a,b", false), None);
    assert_eq!(head("\n\n", true), None);
}

#[test]
fn a_line_too_long_costs_only_itself() {
    let long = "x".repeat(2000);
    for format in [InputFormat::Lines, InputFormat::Csv, InputFormat::Ndjson] {
        let options = ReadOptions { line_bytes_max: 1999, ..options(format) };
        let (rows, report) = read(format!("a\n{long}\n{}\n{long}", &long[1..]).as_bytes(), &options);
        assert_eq!(joined(&rows), format!("a\n{}", &long[1..]).into_bytes());
        let at: Vec<u64> = report.errors.iter().map(|e| e.line).collect();
        assert_eq!(at, [2, 4]);
        assert_eq!(report.errors[0].message, "the line has 2000 bytes, more than 1999 are not taken");
    }
}

/// Endless lines, never in memory.
struct Endless {
    left: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(self.left);
        buffer[..len].fill(b'x');
        self.left -= len;
        if self.left == 0 && len > 0 {
            buffer[len - 1] = b'\n';
        }
        Ok(len)
    }
}

#[test]
fn a_line_too_long_is_never_held() {
    let options = ReadOptions { line_bytes_max: 1 << 16, ..options(InputFormat::Lines) };
    let source = Endless { left: 256 << 20 }.chain(&b"after"[..]);
    let mut reader = RecordReader::new(source, options);
    let batch = reader.next_batch().unwrap().unwrap();
    assert_eq!((batch.len(), batch.line(0)), (1, &b"after"[..]));
    assert_eq!(reader.report().errors.len(), 1);
    assert_eq!(reader.position(), (256 << 20) + 5);
    assert!(reader.next_batch().unwrap().is_none());
    assert!(reader.buffer_bytes() < 4 << 20);
}

/// Fails once its bytes are out.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("gone"))
    }
}

#[test]
fn a_source_that_fails_gives_what_came_before() {
    let data = "a line\n".repeat(10_000) + "half a l";
    let mut reader = RecordReader::new(data.as_bytes().chain(Broken), options(InputFormat::Lines));
    assert_eq!(reader.next_batch().unwrap().unwrap().len(), 10_000);
    let error = reader.next_batch().unwrap_err();
    assert_eq!((error.kind(), error.message()), (haystore::ErrorKind::Io, "reading failed behind byte 70000: gone"));
}

#[test]
fn batches_are_of_the_size_asked_for() {
    let data = "0123456789\n".repeat(1000);
    let options = ReadOptions { batch_bytes: 1000, ..options(InputFormat::Lines) };
    let (batches, _) = parse_body(data.as_bytes(), options).unwrap();
    assert_eq!(batches.iter().map(Batch::len).collect::<Vec<_>>(), [vec![91; 10], vec![90]].concat());
    let (batches, _) = parse_body(&vec![b'\n'; BATCH_RECORDS_MAX + 1], self::options(InputFormat::Lines)).unwrap();
    assert_eq!(batches.iter().map(Batch::len).collect::<Vec<_>>(), [BATCH_RECORDS_MAX, 1]);
}

#[test]
fn a_state_of_another_version_is_refused() {
    let state = Parser::new(options(InputFormat::Lines)).state().to_bytes().unwrap();
    let other = String::from_utf8(state).unwrap().replace("\"version\":1", "\"version\":2");
    let error = ReaderState::from_bytes(other.as_bytes()).unwrap_err();
    assert_eq!(error.message(), "reader state: version 2 is not 1");
}

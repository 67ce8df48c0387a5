use super::*;
use crate::ingest::request::{Parsed, RecordLimits};

const LIMITS: RecordLimits = RecordLimits { line_bytes_max: 1 << 20, request_records_max: 1000 };

fn json(body: &str) -> Parsed {
    parse_json(body.as_bytes(), &LIMITS).unwrap()
}

fn lines(parsed: &Parsed) -> Vec<(i64, String, Vec<u8>, String)> {
    let show = |m: &[u8]| String::from_utf8(m.to_vec()).unwrap();
    parsed.batch.iter().map(|r| (r.timestamp, r.labels.to_string(), r.line.to_vec(), show(r.metadata))).collect()
}

#[test]
fn a_push_gives_its_entries_in_order() {
    let parsed = json(
        r#"{"x":[1,{}],"streams":[{"stream":{"b":"2","a":"1"},"values":[["5","one"],["5","t\"w\\o\n\u00e9\ud83d\ude00",{"k":"v","n":7}]]},
        {"values":[["-3",""],["x","bad"],["4","late"]],"stream":{"c":"3"}}]}"#,
    );
    let expected = [
        (5, "{a=\"1\", b=\"2\"}", "one".as_bytes(), ""),
        (5, "{a=\"1\", b=\"2\"}", "t\"w\\o\né😀".as_bytes(), r#"{"k":"v","n":7}"#),
        (-3, "{c=\"3\"}", b"", ""),
        (4, "{c=\"3\"}", b"late", ""),
    ];
    let expected: Vec<_> = expected.iter().map(|(t, l, line, m)| (*t, (*l).to_string(), line.to_vec(), (*m).to_string())).collect();
    assert_eq!(lines(&parsed), expected);
    assert_eq!(parsed.rejected, 1);
    assert_eq!(parsed.errors[0].record, 4);
}

#[test]
fn bad_entries_are_counted_and_the_good_kept() {
    let huge = "y".repeat(LIMITS.line_bytes_max + 1);
    let parsed = json(&format!(
        r#"{{"streams":[{{"stream":{{}},"values":[["1","a"],["9223372036854775808","b"],[true,"c"],["2"],[],["3","d",[]],["4","e",{{}},5],["5","{huge}"],["6","f"],[7,"g"]]}}]}}"#
    ));
    assert_eq!(parsed.batch.iter().map(|r| r.timestamp).collect::<Vec<_>>(), [1, 6, 7]);
    assert_eq!(parsed.rejected, 7);
    assert_eq!(parsed.errors.iter().map(|e| e.record).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn bytes_that_are_not_utf8_stay() {
    let body = b"{\"streams\":[{\"stream\":{},\"values\":[[\"1\",\"\xff\\u0000\xfe\"],[\"2\",\"\xc3\x28\"]]}]}";
    let parsed = parse_json(body, &LIMITS).unwrap();
    assert_eq!(parsed.batch.line(0), b"\xff\0\xfe");
    assert_eq!(parsed.batch.line(1), b"\xc3\x28");
}

#[test]
fn malformed_bodies_are_errors_and_never_panics() {
    let good = r#"{"streams":[{"stream":{"a":"1"},"values":[["5","o\u00e9",{"k":["v",{"$b":1}]}]]}]}"#;
    for end in 0..good.len() {
        if good.is_char_boundary(end) {
            assert!(parse_json(&good.as_bytes()[..end], &LIMITS).is_err(), "cut at {end}");
        }
    }
    for bad in ["{}", "[]", r#"{"streams":{}}"#, r#"{"streams":[{"stream":{"a":1},"values":[]}]}"#, r#"{"streams":[]} x"#] {
        assert!(parse_json(bad.as_bytes(), &LIMITS).is_err(), "{bad}");
    }
    let deep = format!(r#"{{"streams":[],"x":{}}}"#, "[".repeat(100_000));
    assert!(parse_json(deep.as_bytes(), &LIMITS).is_err());
}

#[test]
fn limits_hold() {
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    let wide = vec!["0"; METADATA_VALUES_MAX + 1].join(",");
    let parsed =
        json(&format!(r#"{{"streams":[{{"stream":{{}},"values":[["1","a",{{"k":{deep}}}],["2","b",{{"k":[{wide}]}}],["3","c"]]}}]}}"#));
    assert_eq!((parsed.batch.len(), parsed.rejected), (1, 2));
    let many = vec![r#"["1",""]"#; LIMITS.request_records_max + 1].join(",");
    for body in [
        format!(r#"{{"streams":[{{"stream":{{}},"values":[{many}]}}]}}"#),
        format!(r#"{{"streams":[{{"values":[{many}],"stream":{{}}}}]}}"#),
    ] {
        assert_eq!(parse_json(body.as_bytes(), &LIMITS).unwrap_err().kind(), haystore::ErrorKind::Limit);
    }
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

fn varint(number: u8, value: i64) -> Vec<u8> {
    let mut out = vec![number << 3];
    prost::encoding::encode_varint(value as u64, &mut out);
    out
}

fn entry(seconds: i64, nanos: i64, line: &[u8], pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = field(1, &[varint(1, seconds), varint(2, nanos)].concat());
    out.extend(field(2, line));
    for (k, v) in pairs {
        out.extend(field(3, &[field(1, k.as_bytes()), field(2, v.as_bytes())].concat()));
    }
    field(2, &out)
}

#[test]
fn protobuf_gives_the_same() {
    let labels = field(1, br#"{a="1", b="t\"\n\u00e9\x41"}"#);
    let first =
        [entry(1, 5, b"one", &[]), labels, entry(-1, 999_999_999, b"\xff\0", &[("k", "v")]), varint(3, 77), entry(i64::MAX, 0, b"x", &[])]
            .concat();
    let second = [field(1, b"{a=1}"), entry(1, 0, b"lost", &[])].concat();
    let body = [field(1, &first), field(1, &second)].concat();
    let parsed = parse_protobuf(&body, &LIMITS).unwrap();
    let labels = "{a=\"1\", b=\"t\\\"\\néA\"}".to_string();
    assert_eq!(
        lines(&parsed),
        [(1_000_000_005, labels.clone(), b"one".to_vec(), String::new()), (-1, labels, b"\xff\0".to_vec(), r#"{"k":"v"}"#.to_string())]
    );
    assert_eq!(parsed.rejected, 2);
    for end in 0..body.len() {
        let _ = parse_protobuf(&body[..end], &LIMITS);
    }
    assert!(parse_protobuf(&body[..body.len() - 1], &LIMITS).is_err());
}

#[test]
fn label_texts() {
    for (text, expected) in [
        ("{}", "{}"),
        (" { a = \"b\" , } ", "{a=\"b\"}"),
        ("{a=`x\\y`}", "{a=\"x\\\\y\"}"),
        (r#"{"x.y"="z"}"#, "{x.y=\"z\"}"),
        (r#"{a="\101\t"}"#, "{a=\"A\\t\"}"),
    ] {
        assert_eq!(parse_labels(text).unwrap().to_string(), expected, "{text}");
    }
    for bad in [
        "",
        "{",
        "{a}",
        "{a=}",
        "{a=\"}",
        "{a=\"\\q\"}",
        "{a=\"\\xff\"}",
        "{a=\"\\ud800\"}",
        "{a=\"b\"} x",
        "{a=\"\\x4",
        "{a=\"b\" c=\"d\"}",
    ] {
        assert!(parse_labels(bad).is_err(), "{bad}");
    }
}

//! Lines of every kind: kept as sent, found as sent.

use super::{in_every_state, push, records};
use crate::support::{Folder, assert_same, quoted};
use serde_json::json;

/// JSON lines that others alter or refuse. Each is also a needle for itself.
fn odd_json() -> Vec<String> {
    let mut lines: Vec<String> = [
        r#"{"a":1,"a":2,"a":"three"}"#,
        r#"{"a":{},"b":[],"c":null,"d":[[],[{}]],"e":[3,1,1,2],"f":[{"x":1},{"x":2}]}"#,
        r#"{"n":1.0,"m":1e3,"o":-0,"p":0.1,"q":1E400,"r":12345678901234567890,"s":"00012"}"#,
        r#"{"":1,"a.b":2,"a":{"b":3}," ":4,"\"":5,"ключ":6,"🦀":7}"#,
        r#"{"status":200}"#,
        r#"{"status":"200"}"#,
        r#"{"status":{"code":200}}"#,
        r#"{"status":[200,"ok",null,true]}"#,
        r#"{"status":null}"#,
        r#"{"status":""}"#,
        r#"{}"#,
        r#"{"j":"{\"a\":1}","n":"1e3","d":"2024-03-01T00:00:00Z","t":"true"}"#,
        r#"{"u":"\u0000","s":"\/","e":"\u00e9é","p":"\ud83e\udd80🦀","lone":"\ud800"}"#,
        r#" {  "spaced" :  1 , "tab":	2 } "#,
        r#"[1,"two",null]"#,
        r#""a string""#,
        r#"17"#,
    ]
    .map(str::to_string)
    .to_vec();
    lines.push(format!(r#"{{"{}":"long key"}}"#, "k".repeat(10_000)));
    lines.push(format!("{}1{}", r#"{"a":"#.repeat(1000), "}".repeat(1000)));
    lines.push(format!("{}{}", "[".repeat(1000), "]".repeat(1000)));
    lines
}

#[test]
fn json_of_every_kind_comes_back_as_sent_and_is_found_as_sent() {
    let lines = odd_json();
    let body = lines.join("\n") + "\n";
    in_every_state(
        |client| {
            let answer = client.post("/api/v1/ingest?format=ndjson&timestamps=none&label=s%3Dx", &[], body.as_bytes());
            assert_eq!(answer.status, 200, "{}", answer.text());
        },
        |client, state| {
            assert_same(&client.scan(), body.as_bytes(), state);
            for line in lines.iter().filter(|l| l.len() < 5000) {
                let query = format!("{{}} |= {}", serde_json::to_string(line).unwrap());
                let found = client.post(&format!("/api/v1/search?output=raw&query={}", quoted(query)), &[], b"").ok().text();
                let wanted: String = lines.iter().filter(|l| l.contains(line.as_str())).map(|l| format!("{l}\n")).collect();
                assert_eq!(found, wanted, "{state}");
            }
            // Line filters see what was sent, not what it means.
            for (needle, wanted) in [("\\u00e9", 1), ("é", 1), ("\\/", 1), ("\\ud800", 1), ("1E400", 1), ("00012", 1), ("\"a\":2", 2)] {
                let answer = client.get(&format!("/api/v1/search?query={}", quoted(needle))).ok();
                let hits = lines.iter().filter(|l| l.contains(needle)).count();
                assert_eq!(answer.text().lines().count(), hits, "{state}: {needle}");
                assert!(hits >= wanted.min(1), "{needle}");
            }
        },
    );
}

#[test]
fn fields_without_number_are_taken() {
    let folder = Folder::new();
    let server = folder.serve(&[]);
    let line = |row: usize| {
        let fields: Vec<String> = (0..10).map(|f| format!(r#""field_{}":{row}"#, row * 10 + f)).collect();
        format!("{{{}}}\n", fields.join(","))
    };
    // 100,000 distinct fields.
    let body: String = (0..10_000).map(line).collect();
    server.client().post("/api/v1/ingest?format=ndjson&timestamps=none", &[], body.as_bytes()).ok();
    assert_same(&server.client().scan(), body.as_bytes(), "in memory");
    server.stop();
    assert_same(&folder.ok(&["scan"]), body.as_bytes(), "flushed");
    folder.ok(&["compact"]);
    assert_same(&folder.ok(&["scan"]), body.as_bytes(), "compacted");
    assert_same(&folder.ok(&["search", "\"field_99999\":9999}"]), line(9999).as_bytes(), "found");
}

#[test]
fn lines_with_newlines_and_empty_lines_of_json_protocols_stay_one_record() {
    in_every_state(
        |client| {
            let entries = [(1, "two\nlines\n", json!({})), (2, "", json!({})), (3, "\n", json!({})), (4, "cr\r", json!({}))];
            assert_eq!(push(client, json!({"s": "x"}), &entries), 204);
        },
        |client, state| {
            let found = records(client);
            let lines: Vec<&str> = found.iter().map(|r| r["line"].as_str().unwrap()).collect();
            assert_eq!(lines, ["two\nlines\n", "", "\n", "cr\r"], "{state}");
            assert_same(&client.scan(), b"two\nlines\n\n\n\n\ncr\r\n", state);
        },
    );
}

#[test]
fn metadata_keeps_its_types_and_empty_is_not_missing() {
    let metadata =
        [json!({"a": "", "t": true}), json!({"t": "true"}), json!({"n": 1, "f": 1.5, "z": null, "l": [1, "x"], "m": {"k": ""}}), json!({})];
    in_every_state(
        |client| {
            let entries: Vec<(i64, &str, _)> = metadata.iter().enumerate().map(|(i, m)| (i as i64, "line", m.clone())).collect();
            assert_eq!(push(client, json!({"s": "x"}), &entries), 204);
        },
        |client, state| {
            let found: Vec<_> = records(client).into_iter().map(|r| r["metadata"].clone()).collect();
            assert_eq!(found, metadata, "{state}");
        },
    );
}

#[test]
fn bytes_that_are_no_text_make_valid_json_answers() {
    let line = b"caf\xe9 \0 \xff\xfe \x1b[0m \"quoted\" \\ \x7f";
    in_every_state(
        |client| {
            client.post("/api/v1/ingest?format=lines&timestamps=none&label=s%3Dx", &[], line).ok();
        },
        |client, state| {
            assert_same(&client.scan(), &[line.as_slice(), b"\n"].concat(), state);
            let record = &records(client)[0];
            assert!(record.get("line").is_none() && record["line_base64"].is_string(), "{state}: {record}");
            let loki = client.get(super::EVERYTHING).ok().json();
            let text = loki["data"]["result"][0]["values"][0][1].as_str().unwrap().to_string();
            assert_eq!(text, String::from_utf8_lossy(line), "{state}");
            let query = quoted(r#"{} |= "\xe9 \x00 \xff""#);
            assert_eq!(client.get(&format!("/api/v1/search?output=raw&query={query}")).ok().body.len(), line.len() + 1, "{state}");
        },
    );
}

#[test]
fn word_parts_ids_inside_ids_case_and_many_alternatives_are_found() {
    let lines: Vec<String> = (0..12_000).map(|i| format!("GET /a/{i:05}?id=5bc{i:04x}F&user=Ünïcode{}", i % 7)).collect();
    let body = lines.join("\n");
    in_every_state(
        |client| {
            client.post("/api/v1/ingest?format=lines&timestamps=none&label=s%3Dx", &[], body.as_bytes()).ok();
        },
        |client, state| {
            for (query, wanted) in [
                (r#"{} |= "bc0fffF""#, 1),
                (r#"{} |= "id=5bc""#, 12_000),
                (r#"{} |= "GET /a""#, 12_000),
                (r#"{} |= "?id=5bc0""#, 4096),
                (r#"{} |= "5BC0""#, 0),
                (r#"{} |~ "(?i)5BC0FFFf""#, 1),
                (r#"{} |~ "(?i)ÜNÏCODE3""#, 1714),
                // Thousands of different ids match; none is cut off.
                (r#"{} |~ "id=5bc[0-9a-f]{4}F""#, 12_000),
                (r#"{} |~ "/a/0[0-9]+\\?id""#, 10_000),
                (r#"{} |~ "/a/(00001|11999)\\?" |= "user""#, 2),
                (r#"{} !~ "id=5bc[0-9a-f]{4}F""#, 0),
            ] {
                let answer = client.get(&format!("/api/v1/search?output=raw&limit=100000&query={}", quoted(query))).ok();
                assert_eq!(answer.text().lines().count(), wanted, "{state}: {query}");
            }
        },
    );
}

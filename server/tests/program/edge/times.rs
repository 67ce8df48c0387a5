//! Timestamps: any, late, early, equal, without zone or year, to the nanosecond.

use super::{EVERYTHING, in_every_state, push, records};
use crate::support::{Folder, assert_same};
use serde_json::json;

const DAY_NS: i64 = 86_400_000_000_000;

#[test]
fn any_timestamp_that_fits_is_kept_to_the_nanosecond() {
    let times = [i64::MIN, -1, 0, 1, 1_700_000_000_123_456_789, 1_700_000_000_123_456_790, i64::MAX - 1, i64::MAX];
    // As they come: the newest first, then out of order.
    let sent = [7, 3, 0, 5, 4, 1, 6, 2];
    in_every_state(
        |client| {
            for index in sent {
                assert_eq!(push(client, json!({"s": "t"}), &[(times[index], &format!("line {index}"), json!({}))]), 204);
            }
        },
        |client, state| {
            let lines: String = (0..times.len()).map(|i| format!("line {i}\n")).collect();
            assert_same(&client.scan(), lines.as_bytes(), state);
            let found = records(client);
            let stamps: Vec<&str> = found.iter().map(|r| r["timestamp"].as_str().unwrap()).collect();
            assert_eq!((stamps[0], stamps[7]), ("1677-09-21T00:12:43.145224192Z", "2262-04-11T23:47:16.854775807Z"), "{state}");
            assert_eq!((stamps[4], stamps[5]), ("2023-11-14T22:13:20.123456789Z", "2023-11-14T22:13:20.123456790Z"), "{state}");
        },
    );
}

#[test]
fn a_timestamp_that_does_not_fit_costs_its_record_only() {
    let folder = Folder::new();
    let server = folder.serve(&[]);
    let body = r#"{"streams":[{"stream":{},"values":[["9223372036854775808","far"],["5","five"],["-9223372036854775809","past"]]}]}"#;
    let answer = server.client().post("/loki/api/v1/push", &super::JSON, body.as_bytes());
    assert_eq!(answer.status, 400);
    assert!(answer.text().starts_with("2 of 3 entries were rejected, 1 were kept"), "{}", answer.text());
    // In a file such a date is text like any other: the line is kept, with the time of its predecessor.
    folder.write("a.log", b"2024-03-01T00:00:01Z a\n9999-01-01T00:00:00Z b\n2024-03-01T00:00:02Z c\n");
    folder.ok(&["ingest", "a.log", "--server", server.address()]);
    assert_same(&server.client().scan(), b"five\n2024-03-01T00:00:01Z a\n9999-01-01T00:00:00Z b\n2024-03-01T00:00:02Z c\n", "scan");
}

#[test]
fn a_backfill_of_years_makes_few_segments_and_comes_back_in_order() {
    let folder = Folder::new();
    let server = folder.serve(&["--flush-age", "1d"]);
    // 600 days over some thirty years, newest first.
    let days: Vec<i64> = (0..600).map(|i| i * 19).collect();
    for day in days.iter().rev() {
        assert_eq!(push(&server.client(), json!({"s": "old"}), &[(day * DAY_NS + 5, &format!("day {day}"), json!({}))]), 204);
    }
    server.stop();
    let wanted: String = days.iter().map(|day| format!("day {day}\n")).collect();
    assert_same(&folder.ok(&["scan"]), wanted.as_bytes(), "flushed");
    let usage = String::from_utf8(folder.ok(&["du"])).unwrap();
    assert!(usage.contains("stored (600 records, 1 segment)"), "{usage}");
    folder.ok(&["compact"]);
    assert_same(&folder.ok(&["scan"]), wanted.as_bytes(), "compacted");
    let year = folder.ok(&["scan", "--from", "1980-01-01", "--to", "1981-01-01"]);
    assert_eq!(year.split(|&b| b == b'\n').count() - 1, days.iter().filter(|d| (3652..4018).contains(*d)).count());
}

#[test]
fn equal_records_are_all_kept_in_the_order_of_their_arrival() {
    in_every_state(
        |client| {
            for line in ["same", "same", "b", "a", "same"] {
                assert_eq!(push(client, json!({"s": "x"}), &[(7, line, json!({}))]), 204);
            }
        },
        |client, state| {
            assert_same(&client.scan(), b"same\nsame\nb\na\nsame\n", state);
            let json = client.get(EVERYTHING).ok().json();
            let values = json["data"]["result"][0]["values"].as_array().unwrap().clone();
            let lines: Vec<&str> = values.iter().map(|v| v[1].as_str().unwrap()).collect();
            assert_eq!(lines, ["same", "same", "b", "a", "same"], "{state}");
        },
    );
}

#[test]
fn pages_across_equal_timestamps_lose_nothing_whatever_their_size() {
    let folder = Folder::new();
    let server = folder.serve(&["--flush-bytes", "1kB"]);
    let lines: Vec<String> = (0..60).map(|i| format!("line {i:02}")).collect();
    for line in &lines {
        assert_eq!(push(&server.client(), json!({"s": "x"}), &[(7, line, json!({}))]), 204);
    }
    for limit in ["1", "7", "59", "60", "61"] {
        let mut found = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let cursor: Vec<&str> = after.iter().flat_map(|a| ["--after", a]).collect();
            let page = folder.run(&[&["search", "{}", "--limit", limit, "--server", server.address()][..], &cursor].concat());
            found.extend(page.stdout.clone());
            after = crate::support::said(&page).split("--after ").nth(1).map(|c| c.trim().to_string());
            if after.is_none() {
                break;
            }
        }
        assert_same(&found, (lines.join("\n") + "\n").as_bytes(), limit);
    }
    // Loki's API pages by time: it says so when a page is one cut run of equal timestamps.
    let json = server.client().get(&EVERYTHING.replace("100000", "7")).ok().json();
    assert!(json["warnings"][0].as_str().unwrap().contains("larger limit"), "{json}");
}

#[test]
fn the_text_of_odd_times_stays_and_their_meaning_is_stated() {
    let lines = [
        ("1157689312 seconds", "2006-09-08T04:21:52.000000000Z"),
        ("1157689312049 milliseconds", "2006-09-08T04:21:52.049000000Z"),
        ("1157689312049001 microseconds", "2006-09-08T04:21:52.049001000Z"),
        ("1157689312049001002 nanoseconds", "2006-09-08T04:21:52.049001002Z"),
        ("2016-12-31T23:59:60Z leap second", "2017-01-01T00:00:00.000000000Z"),
        ("2017-02-01T24:00:00Z end of day", "2017-02-02T00:00:00.000000000Z"),
        ("2018-01-02 03:04:05,678 decimal comma, no zone", "2018-01-02T03:04:05.678000000Z"),
        ("2018-01-02T03:04:05.123456789+02:00 zone", "2018-01-02T01:04:05.123456789Z"),
    ];
    for (line, wanted) in lines {
        let folder = Folder::new();
        folder.write("a.log", line.as_bytes());
        folder.ok(&["ingest", "--format", "lines", "a.log"]);
        let record: serde_json::Value = serde_json::from_slice(&folder.ok(&["scan", "--output", "ndjson"])).unwrap();
        assert_eq!((record["line"].as_str(), record["timestamp"].as_str()), (Some(line), Some(wanted)));
    }
    // Without a year: the latest that does not lie in the future.
    let folder = Folder::new();
    folder.write("a.log", b"Feb 29 00:00:00 host app: x\n");
    folder.ok(&["ingest", "a.log"]);
    let record: serde_json::Value = serde_json::from_slice(&folder.ok(&["scan", "--output", "ndjson"])).unwrap();
    let year: i64 = record["timestamp"].as_str().unwrap()[..4].parse().unwrap();
    assert!(year >= 2024 && year % 4 == 0 && record["timestamp"].as_str().unwrap().contains("-02-29T00:00:00"), "{record}");
}

use super::*;

fn options() -> ReadOptions {
    ReadOptions::new(TimeRules::new(1_772_323_200_000_000_000))
}

fn auto(text: &str) -> Plan {
    detect(text.as_bytes(), true, &options()).unwrap().plan
}

fn csv(delimiter: u8, columns: &[&str], time_column: Option<usize>) -> Plan {
    Plan::Csv { delimiter, columns: columns.iter().map(|s| (*s).to_string()).collect(), time_column }
}

const LINES: Plan = Plan::Lines { window: SEARCH_BYTES };

#[test]
fn tables_are_told_by_header_or_timestamps() {
    let rows = "2015-05-13T23:39:43Z,web,\"GET /a,b\"\n".repeat(3);
    assert_eq!(auto(&rows), csv(b',', &[], Some(0)));
    assert_eq!(auto(&rows.replace(',', "\t")), csv(b'\t', &[], Some(0)));
    assert_eq!(auto(&format!("when,host,what\n{rows}")), csv(b',', &["when", "host", "what"], Some(0)));
    assert_eq!(auto(&format!("\u{feff}when,host,what\r\n{}", rows.replace('\n', "\r\n"))), csv(b',', &["when", "host", "what"], Some(0)));
    let rows = "web;12;a\nweb;13;b\n";
    assert_eq!(auto(&format!("host;count;name\n{rows}")), csv(b';', &["host", "count", "name"], None));
    assert_eq!(auto("id|time|date\n1|1700000000|2015-05-13\n2|1700000001|2015-05-13\n"), csv(b'|', &["id", "time", "date"], Some(1)));
    assert_eq!(auto("a,b,c\n1,\"x\ny\",2\n1,\"x\n\ny\",2\n"), csv(b',', &["a", "b", "c"], None));
}

#[test]
fn text_with_commas_is_text() {
    for text in [
        "one, two, three\nfour, five, six\nseven, eight, nine\n",
        "2015-05-13 23:39:43,945 INFO a, b, c\n2015-05-13 23:39:44,945 INFO d, e, f\n2015-05-13 23:39:45,945 INFO g, h, i\n",
        "Oct 11 22:14:15 host app: a, b, c\nOct 11 22:14:16 host app: a, b, c\nOct 11 22:14:17 host app: a, b, c\n",
        "2015-05-13 23:39:43 main | a | b\n2015-05-13 23:39:43 main | a | b\n2015-05-13 23:39:43 main | a | b\n",
        &"Sep 30 14:35:50 fw log: 53,,1000102631,em0\n".repeat(3),
        "host,count\nweb,1\nweb,2\nweb,3\n",
        "a,b,c\n",
        "",
        "\n\n\n",
    ] {
        assert_eq!(auto(text), LINES, "{text}");
    }
    assert_eq!(detect(b"a\0\n\0b\0\n\0", true, &options()).unwrap().plan, LINES);
    assert_eq!(detect(b"\xff\xfea\0,\0b\0,\0c\0\n\0", true, &options()).unwrap().plan, LINES);
}

#[test]
fn json_is_told_by_parsing_it() {
    assert_eq!(auto("{\"a\":1}\n{\"b\":2}\n"), Plan::Ndjson);
    assert_eq!(auto("\u{feff}{\"a\":1}\r\n\r\n{\"b\":2}"), Plan::Ndjson);
    assert_eq!(auto("{\"a\":1}\n{\"b\":2}\n{\"b\":2}\n{\"b\":2}\nstarted\n"), Plan::Ndjson);
    assert_eq!(auto("{\"a\":1}\nstarted\n{\"b\":2}\n"), LINES);
    assert_eq!(auto("{\n  \"a\": 1\n}\n"), LINES);
    assert_eq!(auto("{a}\n{b}\n"), LINES);
    assert_eq!(auto("[1]\n[2]\n"), LINES);
    let long = format!("{{\"a\":\"{}", "x".repeat(SAMPLE_BYTES));
    assert_eq!(detect(long.as_bytes(), false, &options()).unwrap().plan, Plan::Ndjson);
    assert_eq!(detect(&long.as_bytes()[..100], true, &options()).unwrap().plan, LINES);
}

#[test]
fn a_forced_table_takes_what_it_is_told() {
    let forced = |text: &str, change: &dyn Fn(&mut ReadOptions)| {
        let mut options = ReadOptions { format: InputFormat::Csv, ..options() };
        change(&mut options);
        detect(text.as_bytes(), true, &options).map(|d| d.plan)
    };
    assert_eq!(forced("a,b\n1,2\n", &|_| ()), Ok(csv(b',', &["a", "b"], None)));
    assert_eq!(forced("a;b\n1;2\n", &|_| ()), Ok(csv(b';', &["a", "b"], None)));
    assert_eq!(forced("a;b\n1;2\n", &|o| o.delimiter = Some(b',')), Ok(csv(b',', &["a;b"], None)));
    assert_eq!(forced("a,b\nc,d\n", &|o| o.header = CsvHeader::None), Ok(csv(b',', &[], None)));
    assert_eq!(forced("1,2\n3,4\n", &|o| o.header = CsvHeader::First), Ok(csv(b',', &["1", "2"], None)));
    assert_eq!(forced("a,b\n1,2\n", &|o| o.time_field = Some("b".into())), Ok(csv(b',', &["a", "b"], Some(1))));
    assert_eq!(forced("5,7\n1,2\n", &|o| o.time_field = Some("2".into())), Ok(csv(b',', &[], Some(1))));
    assert_eq!(forced("9,1700000000,2015-05-13 01:02:03\n9,1700000000,2015-05-13 01:02:03\n", &|_| ()), Ok(csv(b',', &[], Some(2))));
    assert_eq!(forced("", &|_| ()), Ok(csv(b',', &[], None)));
    for field in ["c", "3", "0"] {
        let error = forced("a,b\n1,2\n", &|o| o.time_field = Some(field.into())).unwrap_err();
        assert_eq!(error.kind(), haystore::ErrorKind::Invalid, "{field}");
    }
    assert!(forced("a,b\n", &|o| o.delimiter = Some(b'"')).is_err());
}

#[test]
fn the_window_shrinks_where_messages_run_over_lines() {
    let head = "2015-05-13 23:39:43 x\n";
    let text = format!("{head}{head}{head}INSERT INTO t VALUES (1, 'text', '2019-01-01 00:00:00')\n").repeat(30);
    assert_eq!(auto(&text), Plan::Lines { window: 24 });
    assert_eq!(auto(&head.repeat(60)), LINES);
}

use super::*;

/// 2026-03-01T00:00:00Z.
const NOW: i64 = 1_772_323_200_000_000_000;
/// 2000-10-10T20:55:36Z.
const OCTOBER: i64 = 971_211_336_000_000_000;

fn in_line(line: &str) -> Option<i64> {
    find(line.as_bytes(), SEARCH_BYTES, &TimeRules::new(NOW)).map(|f| f.nanos)
}

fn in_value(text: &str) -> Option<i64> {
    value(text.as_bytes(), &TimeRules::new(NOW))
}

#[test]
fn one_instant_in_many_layouts() {
    for text in [
        "2000-10-10T20:55:36Z",
        "2000-10-10t20:55:36z",
        "2000-10-10 20:55:36",
        "2000-10-10 20:55:36 UTC",
        "2000-10-10 20:55:36 GMT",
        "2000-10-10T13:55:36-07:00",
        "2000-10-10T13:55:36-0700",
        "2000-10-10 13:55:36-07",
        "2000-10-10 13:55:36 -0700",
        "2000-10-10 22:25:36,000 +01:30",
        "2000/10/10 20:55:36",
        "2000/10/10 - 20:55:36",
        "10/Oct/2000:13:55:36 -0700",
        "10-Oct-2000 20:55:36",
        "10-OCT-2000 20:55:36.000",
        "Tue, 10 Oct 2000 20:55:36 GMT",
        "10 Oct 2000 13:55:36 -0700",
        "Tue Oct 10 20:55:36 2000",
        "Tue Oct 10 20:55:36.000000 2000",
        "Tue Oct 10 20:55:36 UTC 2000",
        "Oct 10 2000 20:55:36",
    ] {
        assert_eq!(in_value(text), Some(OCTOBER), "{text}");
        for (before, after) in [("", ""), ("", " x"), ("[", "] x"), ("127.0.0.1 - frank [", "] \"GET\""), ("ts=\"", "\"")] {
            let line = format!("{before}{text}{after}");
            let found = find(line.as_bytes(), SEARCH_BYTES, &TimeRules::new(NOW));
            let expected = Found { start: before.len(), end: before.len() + text.len(), nanos: OCTOBER };
            assert_eq!(found, Some(expected), "{line}");
        }
    }
}

#[test]
fn fractions_end_at_the_ninth_digit() {
    for (text, nanos) in [
        ("2000-10-10T20:55:36.5Z", 500_000_000),
        ("2000-10-10T20:55:36,123", 123_000_000),
        ("2000-10-10T20:55:36.123456Z", 123_456_000),
        ("2000-10-10T20:55:36.123456789Z", 123_456_789),
        ("2000-10-10T20:55:36.1234567899999Z", 123_456_789),
        ("2000-10-10T20:55:36.", 0),
        ("2000-10-10T20:55:36, x", 0),
        ("10/Oct/2000:13:55:36.25 -0700", 250_000_000),
    ] {
        assert_eq!(in_line(text), Some(OCTOBER + nanos), "{text}");
    }
}

#[test]
fn a_missing_zone_is_the_rule_s() {
    let rules = TimeRules { zone_seconds: 7200, ..TimeRules::new(NOW) };
    let at = |text: &str| find(text.as_bytes(), SEARCH_BYTES, &rules).map(|f| f.nanos);
    assert_eq!(at("2000-10-10 22:55:36"), Some(OCTOBER));
    assert_eq!(at("2000-10-10 22:55:36 CEST"), Some(OCTOBER));
    assert_eq!(at("Tue Oct 10 22:55:36 CEST 2000"), Some(OCTOBER));
    assert_eq!(at("2000-10-10 20:55:36Z"), Some(OCTOBER));
    assert_eq!(value(b"2000-10-11", &rules), Some(OCTOBER + 3600 * 1_000_000_000 + 264 * 1_000_000_000));
}

#[test]
fn a_missing_year_is_the_rule_s_or_the_latest_that_fits() {
    let second = 1_000_000_000;
    let day = 86_400 * second;
    // NOW is the first instant of 1 March 2026.
    assert_eq!(in_line("Mar  1 00:00:00 host app: x"), Some(NOW));
    assert_eq!(in_line("Mar  2 00:00:00 host app: x"), Some(NOW + day));
    assert_eq!(in_line("Mar  2 00:00:01 host app: x"), Some(NOW + day + second - 365 * day));
    assert_eq!(in_line("Feb 28 23:59:59 host app: x"), Some(NOW - second));
    assert_eq!(in_line("Dec 31 00:00:00 host app: x"), Some(NOW - 60 * day));
    // The last 29 February before it is that of 2024.
    assert_eq!(in_line("<34>Feb 29 00:00:00 host app: x"), Some(NOW - 731 * day));
    let rules = TimeRules { year: Some(2000), ..TimeRules::new(NOW) };
    let at = |text: &str| find(text.as_bytes(), SEARCH_BYTES, &rules).map(|f| f.nanos);
    assert_eq!(at("Oct 10 20:55:36 host"), Some(OCTOBER));
    assert_eq!(at("Tue Oct 10 20:55:36 host"), Some(OCTOBER));
    assert_eq!(TimeRules { year: Some(2001), ..rules }, TimeRules { now: NOW, zone_seconds: 0, year: Some(2001) });
    assert_eq!(find(b"Feb 29 00:00:00 host", SEARCH_BYTES, &TimeRules { year: Some(2001), ..rules }), None);
}

#[test]
fn leap_seconds_fold_and_midnight_has_two_names() {
    let new_year = 1_483_228_800_000_000_000;
    assert_eq!(in_line("2016-12-31T23:59:60Z"), Some(new_year));
    assert_eq!(in_line("2016-12-31T23:59:60.5Z"), Some(new_year + 500_000_000));
    assert_eq!(in_line("2016-12-31T24:00:00Z"), Some(new_year));
    assert_eq!(in_line("2017-01-01T00:00:00Z"), Some(new_year));
    assert_eq!(in_line("2016-12-31T24:00:01Z"), None);
    assert_eq!(in_line("2016-12-31T24:00:00.1Z"), None);
    assert_eq!(in_line("2016-12-31T23:59:61Z"), None);
}

#[test]
fn epochs_by_magnitude() {
    for (text, nanos) in [
        ("971211336", Some(OCTOBER)),
        ("971211336.25", Some(OCTOBER + 250_000_000)),
        ("971211336000", Some(OCTOBER)),
        ("971211336000000", Some(OCTOBER)),
        ("971211336000000000", Some(OCTOBER)),
        ("971211336000.5", Some(OCTOBER + 500_000)),
        ("971211336000000001.9", Some(OCTOBER + 1)),
        ("-971211336", Some(-OCTOBER)),
        ("99999999", None),
        ("9223372036854775807", Some(i64::MAX)),
        ("9223372036854775808", None),
        ("99999999999", None),
        ("12345678901234567890", None),
        ("1.6e9", None),
        ("971211336x", None),
        ("", None),
        ("-", None),
    ] {
        assert_eq!(in_value(text), nanos, "{text}");
    }
    assert_eq!(in_line("1157689312.049   5006 10.105.21.199 TCP_MISS"), Some(1_157_689_312_049_000_000));
    assert_eq!(in_line("[1157689312049] x"), Some(1_157_689_312_049_000_000));
    assert_eq!(in_line("1157689312049000: x"), Some(1_157_689_312_049_000_000));
    assert_eq!(in_line("1157689312049000001"), Some(1_157_689_312_049_000_001));
    assert_eq!(in_line("type=PATH msg=audit(1684331782.591:3295): item=0"), Some(1_684_331_782_591_000_000));
    assert_eq!(in_line("type=PATH msg=audit(1337845201.0:0): x"), Some(1_337_845_201_000_000_000));
    assert_eq!(in_line("2021-11-09  5:13:11 8 [Warning]"), in_line("2021-11-09 05:13:11"));
    for line in ["audit(168433178:1)", "audit(:1)", "audi(1684331782.591:3295)", "1684331782.591:32:95x 1:2"] {
        assert!(in_line(line).is_none() || line.starts_with('1'), "{line}");
    }
    for line in ["5551234567 x", "11576893120 x", "1157689312a", "1157689312-22", "x 1157689312", "0157689312"] {
        assert_eq!(in_line(line), None, "{line}");
    }
}

#[test]
fn what_is_no_timestamp() {
    for line in [
        "",
        ":",
        "::::::::",
        "12:34:56",
        "a 12:34:56 b",
        "2015-13-01 00:00:00",
        "2015-02-29 00:00:00",
        "2015-01-01 25:00:00",
        "2015-01-01 00:60:00",
        "2015-01-01 00:00:000",
        "12015-01-01 00:00:00",
        "2015-01/01 00:00:00",
        "32/Oct/2000:13:55:36",
        "10/Okt/2000:13:55:36",
        "oct 10 13:55:36",
        "xOct 10 13:55:36",
        "9999-01-01T00:00:00Z",
        "1600-01-01T00:00:00Z",
        "00:11:22:33:44:55",
        "fe80::1:22:33:44",
    ] {
        assert_eq!(in_line(line), None, "{line}");
    }
    assert_eq!(in_value("x 2015-01-01 00:00:00"), None);
    assert_eq!(in_value("2015-01-0"), None);
    assert_eq!(in_value("2015-01-01x"), None);
}

#[test]
fn the_first_one_counts_within_the_window() {
    assert_eq!(in_line("00:11:22:33 2000-10-10 20:55:36 2001-01-01 00:00:00"), Some(OCTOBER));
    let late = |blanks: usize| format!("{}2000-10-10 20:55:36", " ".repeat(blanks));
    assert_eq!(in_line(&late(SEARCH_BYTES - 1)), Some(OCTOBER));
    assert_eq!(in_line(&late(SEARCH_BYTES)), None);
    assert_eq!(find(late(9).as_bytes(), 10, &TimeRules::new(NOW)).map(|f| f.start), Some(9));
    assert_eq!(find(late(10).as_bytes(), 10, &TimeRules::new(NOW)), None);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_searched_without_a_panic(mut line: Vec<u8>, noise: Vec<(usize, u8)>, now: i64, zone_seconds in -90_000..90_000i32) {
        let rules = TimeRules { now, zone_seconds, year: None };
        let _ = find(&line, SEARCH_BYTES, &rules);
        let _ = value(&line, &rules);
        line.extend_from_slice(b"Sun Dec 04 04:47:44.123 UTC 2005 10/Oct/2000:13:55:36 -0700 2000-10-10T13:55:36-07:00");
        for (at, byte) in noise {
            let at = at % line.len();
            line[at] = byte;
        }
        let _ = find(&line, SEARCH_BYTES, &rules);
        for start in 0..line.len() {
            let _ = value(&line[start..], &rules);
            let _ = find(&line[..start], SEARCH_BYTES, &rules);
        }
    }
}

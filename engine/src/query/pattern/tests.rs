use super::*;
use proptest::prelude::*;

/// A pattern, texts that match, texts that do not.
type Case<'a> = (&'a str, &'a [&'a [u8]], &'a [&'a [u8]]);

#[test]
fn regexes_mean_what_they_mean_in_re2() {
    let cases: &[Case<'_>] = &[
        ("", &[b"", b"x", b"\xff"], &[]),
        ("a.c", &[b"abc", "aéc".as_bytes(), b"a\xffc", b"xa\x80c"], &[b"ac", b"a\nc", b"a\xff\xffc"]),
        ("(?s)a.c", &[b"a\nc"], &[b"ac"]),
        ("^.$", &[b"\xe2", "é".as_bytes()], &[b"\xe2\x82", b"", b"\xff\xff"]),
        ("^[^a]+$", &[b"\xff\xfe", b"\n"], &[b"a\xff"]),
        ("a\u{fffd}b", &[b"a\xffb", "a\u{fffd}b".as_bytes()], &[b"ab"]),
        (r"\d", &[b"7"], &["٣".as_bytes()]),
        (r"^\w+$", &[b"a_9"], &["é".as_bytes()]),
        (r"^\W$", &["é".as_bytes(), b"-"], &[b"a"]),
        (r"\s", &[b" ", b"\t"], &[b"\x0b", "\u{a0}".as_bytes()]),
        (r"a\b", &[b"a", "aé".as_bytes(), b"a\xff"], &[b"ab"]),
        (r#"{"level":"e"#, &[br#"{"level":"error"#], &[b"level"]),
        ("a{2}", &[b"aa"], &[b"a{2}"]),
        ("a{,2}", &[b"a{,2}"], &[b"aa"]),
        ("a{x", &[b"a{x"], &[b"ax"]),
        (r"^\[[^[]*$", &[b"[a&&b"], &[b"[["]),
        ("^[a&&b]$", &[b"&", b"a"], &[b"c"]),
        ("^[]a]$", &[b"]", b"a"], &[b"b"]),
        ("^[^]a]$", &[b"b"], &[b"]"]),
        ("^[a-]$", &[b"-", b"a"], &[b"b"]),
        ("^[+--]$", &[b",", b"-"], &[b"."]),
        (r"^[\d~~x]$", &[b"~", b"1", b"x"], &[b"y"]),
        (r"^[\]\\\x41-\x43\101]$", &[b"]", b"\\", b"B"], &[b"D"]),
        ("^[[:alpha:][:^ascii:]]$", &[b"z", "é".as_bytes()], &[b"1"]),
        ("^[[:a]$", &[b"[", b":", b"a"], &[b"b"]),
        (r"\<34\>", &[b"<34>"], &[b"34"]),
        (r"^\Qa.*\E+$", &[b"a.**"], &[b"abc"]),
        (r"\Q[", &[b"["], &[b"x"]),
        (r"^\x{e9}\xe9$", &["éé".as_bytes()], &[b"\xe9\xe9"]),
        (r"^\0\01\012\101$", &[b"\0\x01\nA"], &[b""]),
        (r"\pL\p{Greek}\P{Greek}", &["xαb".as_bytes()], &["xαα".as_bytes()]),
        ("(?i)straße|K", &["STRAßE".as_bytes(), b"k", "\u{212a}".as_bytes()], &[b"x"]),
        ("(?P<a>x)(?<b>y)(?:z)", &[b"xyz"], &[b"xy"]),
        ("(?m)^b$", &[b"a\nb\nc"], &[b"ab"]),
        ("b$", &[b"ab"], &[b"b\n"]),
        ("a||b", &[b""], &[]),
        ("(?i)error", &[b"an ErRor"], &[b"err"]),
        ("x.*(?i)connection.*y", &[b"x CONNECTION y"], &[b"x connect y"]),
        (r"\-\_\/\'\%\@", &[b"-_/'%@"], &[b""]),
        ("]}", &[b"]}"], &[b"]"]),
    ];
    for (source, hits, misses) in cases {
        let pattern = Pattern::line(source).unwrap_or_else(|e| panic!("{source}: {e}"));
        for (texts, expected) in [(hits, true), (misses, false)] {
            for text in *texts {
                assert_eq!(pattern.is_match(text), expected, "{source} on {:?}", String::from_utf8_lossy(text));
            }
        }
    }
}

#[test]
fn label_patterns_match_the_whole_value() {
    let cases = [
        ("a|b", "a", true),
        ("a|b", "ab", false),
        ("a.b", "a\nb", true),
        ("(?m)a$", "a\nb", false),
        ("", "", true),
        ("", "a", false),
        (".+", "", false),
        ("(?i)prod", "PROD", true),
    ];
    for (source, value, expected) in cases {
        assert_eq!(Pattern::label(source).unwrap().is_match(value.as_bytes()), expected, "{source} on {value:?}");
    }
}

#[test]
fn what_is_no_regex_says_why() {
    let cases = [
        ("a)(b", "invalid regex: unopened group"),
        ("(a", "invalid regex: unclosed group"),
        ("[a", "invalid regex: unclosed class"),
        ("a\\", "invalid regex: it ends with a backslash"),
        (r"(a)\1", "invalid regex: backreferences are not supported"),
        ("(?x)a", "invalid regex: unknown flag 'x' in (?…)"),
        ("(?-u:a)", "invalid regex: unknown flag 'u' in (?…)"),
        (r"\y", r"invalid regex: unknown escape \y"),
        (r"[\b]", r"invalid regex: unknown escape \b"),
        ("[[:foo:]]", "invalid regex: unknown class [:foo:]"),
        (r"\x{110000}", r"invalid regex: \x names no character"),
        (r"\p{Nothing}", "invalid regex: Unicode property not found"),
        ("*", "invalid regex: repetition operator missing expression"),
    ];
    for (source, message) in cases {
        let error = Pattern::line(source).unwrap_err();
        assert_eq!((error.message(), error.kind()), (message, crate::ErrorKind::Invalid), "{source}");
        assert!(Pattern::label(source).is_err());
    }
    assert_eq!(Pattern::line("((a{500}){500}){500}").unwrap_err().kind(), crate::ErrorKind::Limit);
}

#[test]
fn required_literals_are_read_out_of_a_regex() {
    let cases: &[(&str, Option<&[&str]>)] = &[
        ("abc", Some(&["abc"])),
        ("a.*bcd", Some(&["bcd"])),
        ("(abc|de)x?", Some(&["abc", "de"])),
        ("(abc)+", Some(&["abc"])),
        ("(abc)*", None),
        ("a|.", None),
        ("[0-9]+ms", Some(&["ms"])),
        ("[0-9]", None),
        ("x[0-2]", Some(&["x0", "x1", "x2"])),
        (r"\w\w", None),
        ("ab\u{fffd}cd", None),
        ("ab[^x]cd", Some(&["ab"])),
        ("^abc$", Some(&["abc"])),
    ];
    for (source, expected) in cases {
        let pattern = Pattern::line(source).unwrap();
        let Some(literals) = pattern.required() else {
            assert!(expected.is_none(), "{source}");
            continue;
        };
        let expected = expected.unwrap_or_else(|| panic!("{source}: {literals:?}"));
        match &**literals {
            Literals::One(finder) => assert_eq!([std::str::from_utf8(finder.needle()).unwrap()], *expected, "{source}"),
            Literals::Many(searcher, _) => {
                assert_eq!(searcher.patterns_len(), expected.len(), "{source}");
                expected.iter().for_each(|e| assert_eq!(searcher.find(e).map(|m| m.range()), Some(0..e.len()), "{source}: {e}"));
            }
        }
    }
}

fn piece() -> impl Strategy<Value = String> {
    let atoms = prop::sample::select(vec![
        "a",
        "b",
        "ab",
        "é",
        ".",
        "[ab]",
        "[^a]",
        "(?i:ab)",
        "a*",
        "b+",
        "a?",
        ".*",
        "(a|bé)",
        "(ab|b|aé)+",
        "(a.b)?",
        "\u{fffd}",
        "^",
        "$",
        "x{2}",
        r"\w",
    ]);
    prop::collection::vec(atoms, 1..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    /// The shortcuts never change the answer: the regex over the text with broken bytes replaced is the rule.
    #[test]
    fn shortcuts_do_not_change_the_answer(
        pieces in prop::collection::vec(piece(), 1..3),
        text in prop::collection::vec(prop::sample::select(vec![b'a', b'b', b'x', b'\n', 0xff, 0xc3, 0xa9, 0xef, 0xbf, 0xbd]), 0..12),
    ) {
        let source = pieces.join("|");
        let pattern = Pattern::line(&source).unwrap();
        let plain = regex::Regex::new(&re2::translate(&source).unwrap()).unwrap();
        prop_assert_eq!(pattern.is_match(&text), plain.is_match(&replace_broken(&text)), "{} on {:?}", source, text);
    }

    #[test]
    fn any_text_is_translated_without_a_panic(source in r#"([\\\[\](){}^$.|?*+a-zQEx0-9:<>,é-]|\\PC){0,30}"#) {
        if let Ok(pattern) = Pattern::line_within(&source, 1 << 16) {
            pattern.is_match(source.as_bytes());
        }
    }

    /// A literal, escaped, finds itself.
    #[test]
    fn an_escaped_literal_finds_itself(text in any::<String>()) {
        let escaped: String = text.chars().flat_map(|c| if c.is_ascii_punctuation() { vec!['\\', c] } else { vec![c] }).collect();
        let pattern = Pattern::line(&escaped).unwrap();
        prop_assert!(pattern.is_match(text.as_bytes()));
        prop_assert!(Pattern::label(&escaped).unwrap().is_match(text.as_bytes()));
    }
}

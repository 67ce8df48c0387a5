use super::*;
use crate::ErrorKind;
use crate::query::{LabelMatcher, LabelTest, LineFilter, Pattern};
use crate::record::Labels;
use proptest::prelude::*;

#[test]
fn queries_are_read_and_written() {
    // Text, and the canonical form of what it means.
    let cases: &[(&str, &str)] = &[
        ("{}", "{}"),
        (" { } ", "{}"),
        (r#"{app="web"}"#, r#"{app="web"}"#),
        (r#"{app="web",env!="dev" , a=~"x|y", b!~`z\d`}"#, r#"{app="web", env!="dev", a=~"x|y", b!~"z\\d"}"#),
        (r#"{json="a", or="b", ip="c", _x1="d"}"#, r#"{json="a", or="b", ip="c", _x1="d"}"#),
        (r#"{"k8s.pod"="a", "x"="b"}"#, r#"{"k8s.pod"="a", x="b"}"#),
        (r#"{a="b"}|="c"!="d"|~"e"!~"f""#, r#"{a="b"} |= "c" != "d" |~ "e" !~ "f""#),
        (r#"{} |= "a" or "b" or `c` != "d""#, r#"{} |= "a" or "b" or "c" != "d""#),
        (r#"{} != "a" or "b""#, r#"{} != "a" != "b""#),
        (r#"{} |~ "a.b" or "c" |= """#, r#"{} |~ "a.b" or "c" |= """#),
        (r#"{} !~ "a" or "b""#, r#"{} !~ "a" !~ "b""#),
        ("{a=\"b\"} # c } \"\n|= \"# d\" # e", r##"{a="b"} |= "# d""##),
        (r#"{} |= "\a\b\f\n\r\t\v\\\"\x00\xff\101\u00e9\U0001F600""#, r#"{} |= "\x07\x08\x0c\n\r\t\x0b\\\"\x00\xffAé😀""#),
        ("{} |= `a\\n\n\"b`", r#"{} |= "a\\n\n\"b""#),
        ("needle", r#"{} |= "needle""#),
        ("", r#"{} |= """#),
        (" a \"b\" {c} # d\n", r#"{} |= " a \"b\" {c} # d\n""#),
        (r#"sum(rate({a="b"}[5m]))"#, r#"{} |= "sum(rate({a=\"b\"}[5m]))""#),
    ];
    for (text, canonical) in cases {
        let query = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(query.to_string(), *canonical, "{text}");
        assert_eq!(parse(canonical).unwrap(), query, "{text}");
    }
}

#[test]
fn errors_name_line_and_column() {
    let cases: &[(&str, &str)] = &[
        ("{", "line 1, col 2: expected a label's name, found the end of the query"),
        ("{a", "line 1, col 3: expected one of = != =~ !~, found the end of the query"),
        ("{a=}", "line 1, col 4: expected a quoted value, found `}`"),
        ("{a==\"b\"}", "line 1, col 3: expected one of = != =~ !~, found `==`"),
        ("{a=\"b\",}", "line 1, col 8: expected a label's name, found `}`"),
        ("{a=\"b\" c=\"d\"}", "line 1, col 8: expected `,` or `}`, found `c`"),
        ("{a=\"b", "line 1, col 4: the string has no closing quote on its line"),
        ("{a=\"b\n\"}", "line 1, col 4: the string has no closing quote on its line"),
        ("{a=`b", "line 1, col 4: the string has no closing backtick"),
        ("{é=\"b\"}", "line 1, col 2: expected a label's name, found the character 'é'"),
        ("{}\n  |= é", "line 2, col 6: expected a quoted string, found the character 'é'"),
        ("{} |= \"é\" |= \"\\q\"", "line 1, col 15: unknown escape in the string; a backslash itself is written \\\\"),
        ("{} |= \"\\x0\"", "line 1, col 8: the escape needs 2 digits of base 16"),
        ("{} |= \"\\x+1\"", "line 1, col 8: the escape needs 2 digits of base 16"),
        ("{} |= \"\\777\"", "line 1, col 8: the escape does not fit a byte"),
        ("{} |= \"\\ud800\"", "line 1, col 8: the escape names no character"),
        ("{} |= \"a\\", "line 1, col 9: unknown escape in the string; a backslash itself is written \\\\"),
        ("{} |= \"\\é", "line 1, col 8: unknown escape in the string; a backslash itself is written \\\\"),
        ("{} |= \"a\" or", "line 1, col 13: expected a quoted string, found the end of the query"),
        ("{a=\"\\xff\"}", "line 1, col 4: the string is not UTF-8; only |= and != take any bytes"),
        ("{a=~\"(\"}", "line 1, col 5: invalid regex: unclosed group"),
        ("{}\n|~ \"[\"", "line 2, col 4: invalid regex: unclosed class"),
        ("{} | json", "line 1, col 4: `| json` is not supported yet"),
        ("{} | status >= 500", "line 1, col 4: `| status` is not supported yet"),
        ("{} | line_format \"{{.a}}\"", "line 1, col 4: `| line_format` is not supported yet"),
        ("{} | ", "line 1, col 6: expected a stage's name after `|`, found the end of the query"),
        ("{} |> \"<_> a\"", "line 1, col 4: pattern line filters (|> and !>) are not supported yet"),
        ("{} |= ip(\"10.0.0.0/8\")", "line 1, col 7: ip() filters are not supported yet"),
        ("{} [5m]", "line 1, col 4: ranges and metric queries are not supported yet"),
        ("{} + {}", "line 1, col 4: binary operators are not supported yet"),
        ("{} and {}", "line 1, col 4: binary operators are not supported yet"),
        ("{} x", "line 1, col 4: expected a line filter (|= != |~ !~), found `x`"),
        ("{} {}", "line 1, col 4: expected a line filter (|= != |~ !~), found `{`"),
    ];
    for (text, message) in cases {
        let error = parse(text).map(|q| q.to_string()).unwrap_err();
        assert_eq!((error.message(), error.kind()), (format!("parse error at {message}").as_str(), ErrorKind::Invalid), "{text}");
    }
    let strict: &[(&str, &str)] = &[
        ("rate({a=\"b\"}[5m])", "line 1, col 1: metric queries are not supported yet"),
        ("# x\n(1 + 1)", "line 2, col 1: metric queries are not supported yet"),
        ("", "line 1, col 1: expected a stream selector such as {app=\"web\"}, found the end of the query"),
        ("\"a\"", "line 1, col 1: expected a stream selector such as {app=\"web\"}, found a string"),
    ];
    for (text, message) in strict {
        assert_eq!(parse_strict(text).unwrap_err().message(), format!("parse error at {message}"), "{text}");
    }
    assert_eq!(parse_strict("# x\n{}"), Ok(Query::default()));
}

#[test]
fn queries_choose_streams_and_lines() {
    let labels = Labels::new([("app", "web"), ("env", "prod")]);
    let cases: &[(&str, bool)] = &[
        ("{}", true),
        (r#"{app="web", env="prod"}"#, true),
        (r#"{app="we"}"#, false),
        (r#"{app=~"we"}"#, false),
        (r#"{app=~"we.|x"}"#, true),
        (r#"{app!~"we.|x"}"#, false),
        (r#"{none=""}"#, true),
        (r#"{none!=""}"#, false),
        (r#"{none=~".*", app!=""}"#, true),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap().matches_stream(&labels), *expected, "{text}");
    }
    let line = b"GET /a?b=\xff 200 in 5ms";
    let cases: &[(&str, bool)] = &[
        ("GET", true),
        ("get", false),
        (r#"{} |= "POST" or "GET""#, true),
        (r#"{} |= "POST" or "PUT""#, false),
        (r#"{} != "POST" or "GET""#, false),
        (r#"{} != "POST" or "PUT""#, true),
        (r#"{} |= "\xff 200""#, true),
        (r#"{} |~ "b=. 200" |= "5ms""#, true),
        (r#"{} |~ "x" or "\\d+ms$""#, true),
        (r#"{} !~ "x" or "\\d+ms$""#, false),
        (r#"{} |~ "(?i)get""#, true),
        (r#"{} |= """#, true),
        (r#"{} != """#, false),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap().matches_line(line), *expected, "{text}");
    }
}

#[test]
fn limits_are_named() {
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let many = "{}".to_string() + &" |~ \"a\"".repeat(REGEXES_MAX + 1);
    let grown = r#"{} |~ "((a{500}){500}){500}""#.to_string();
    for text in [long, many, grown] {
        assert_eq!(parse(&text).unwrap_err().kind(), ErrorKind::Limit);
    }
}

#[test]
fn long_queries_are_read() {
    let repeat = |part: &str| part.repeat(250_000 / part.len());
    let texts = [
        "{}".to_string() + &repeat(" |= \"a\""),
        "{} |= \"a\"".to_string() + &repeat(" or \"b\""),
        format!("{{{}a=\"b\"}}", repeat("a=\"b\",")),
        format!("{{}} |~ \"x{}\"", repeat("|abcdefgh")),
        format!("{{a=~\"x{}\"}}", repeat("|abc[0-9]")),
        format!("{{}} |= \"{}\"", repeat("\\u00e9")),
        format!("{{}}{}|= \"a\"", repeat("# comment\n")),
    ];
    for text in texts {
        let query = parse(&text).unwrap_or_else(|e| panic!("{}: {e}", &text[..30]));
        assert!(!query.filters.is_empty() || !query.matchers.is_empty());
    }
    for (part, before) in
        [("[:", "{} |~ \"["), ("{1,", "{} |~ \"a"), ("(", "{} |~ \""), ("{", ""), ("(?i", "{} |~ \""), ("\\\\Q", "{} |~ \"")]
    {
        let _ = parse(&format!("{before}{}\"", repeat(part)));
    }
}

fn any_pattern(make: fn(&str) -> Result<Pattern>) -> impl Strategy<Value = Pattern> {
    let sources = prop_oneof![any::<String>(), "[a-z.*|\"\\\\n]{0,8}", Just("(?i)a|b\\d".to_string())];
    sources.prop_filter_map("a regex", move |source| make(&source).ok())
}

fn any_query() -> impl Strategy<Value = Query> {
    let test = prop_oneof![
        any::<String>().prop_map(LabelTest::Eq),
        any::<String>().prop_map(LabelTest::Ne),
        any_pattern(Pattern::label).prop_map(LabelTest::Match),
        any_pattern(Pattern::label).prop_map(LabelTest::NoMatch),
    ];
    let matcher = (prop_oneof!["[a-z_][a-z0-9_]{0,5}", any::<String>()], test).prop_map(|(name, test)| LabelMatcher { name, test });
    let filter = prop_oneof![
        any::<Vec<u8>>().prop_map(LineFilter::Contains),
        any::<Vec<u8>>().prop_map(LineFilter::ContainsNot),
        any::<String>().prop_map(|s| LineFilter::Contains(s.into_bytes())),
        prop::collection::vec(any::<Vec<u8>>(), 2..4).prop_map(LineFilter::ContainsAny),
        any_pattern(Pattern::line).prop_map(LineFilter::Match),
        any_pattern(Pattern::line).prop_map(LineFilter::NoMatch),
        prop::collection::vec(any_pattern(Pattern::line), 2..3).prop_map(LineFilter::MatchAny),
    ];
    (prop::collection::vec(matcher, 0..4), prop::collection::vec(filter, 0..5)).prop_map(|(matchers, filters)| Query { matchers, filters })
}

proptest! {
    #[test]
    fn a_query_survives_its_text(query in any_query()) {
        let text = query.to_string();
        let back = parse(&text).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        prop_assert_eq!(back.to_string(), text);
        prop_assert_eq!(back, query);
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in prop_oneof![any::<String>(), "[{}a=~!|\"`\\\\#\n or(x1\\[,é]{0,40}"]) {
        let _ = parse(&text);
        let _ = parse_strict(&text);
        let _ = parse(&format!("{{{text}"));
        let _ = parse(&format!("{{}} |= {text}"));
    }
}

//! A page that needs nothing else: charts of bars, light or dark as the reader's system is.

use super::{Report, Store, table};
use crate::peer::Sort;
use haystore_server::cli::units::{ratio, size};
use std::fmt::Write as _;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#666;--line:#ddd;--bar:#9db4cc;--own:#2f6db5;--page:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--soft:#999;--line:#333;--bar:#46566a;--own:#5b9be6;--page:#161616}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.05rem;margin:2rem 0 .5rem}p,li{color:var(--soft)}
.chart{display:grid;grid-template-columns:max-content 1fr;gap:.2rem .8rem;align-items:center}
.track{display:flex;align-items:center;gap:.5rem;min-width:0}.bar{height:1rem;min-width:1px;background:var(--bar);border-radius:2px}
.own{background:var(--own)}.value{white-space:nowrap;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}table{border-collapse:collapse}th,td{text-align:left;padding:.25rem .7rem .25rem 0;border-bottom:1px solid var(--line)}
code{overflow-wrap:anywhere}";

/// `text` as HTML text or as a value between double quotes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// How long bars are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// As the values.
    Linear,
    /// As their logarithms above the smallest, for values that lie far apart.
    Log,
}

/// Lengths of bars in percent.
fn lengths(values: &[f64], scale: Scale) -> Vec<f64> {
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let least = values.iter().copied().filter(|&v| v > 0.0).fold(most, f64::min);
    // The smallest gets a bar too.
    let log = |v: f64| if v > 0.0 { ((v / least).log10() + 0.3) / ((most / least).log10() + 0.3) } else { 0.0 };
    let share = |v: f64| if scale == Scale::Log { log(v) } else { v / most };
    values.iter().map(|&v| (share(v) * 70.0).clamp(0.0, 70.0)).collect()
}

/// A chart of one figure; nothing when no store has it.
fn chart(out: &mut String, report: &Report, (title, scale): (&str, Scale), figure: impl Fn(&Store) -> Option<(f64, String)>) {
    let bars: Vec<(&str, f64, String)> =
        report.stores.iter().filter_map(|s| figure(s).map(|(value, text)| (s.name, value, text))).collect();
    if bars.is_empty() {
        return;
    }
    let lengths = lengths(&bars.iter().map(|b| b.1).collect::<Vec<_>>(), scale);
    // Writing to a string cannot fail.
    let _ = write!(out, "<h2>{}</h2>\n<div class=\"chart\">\n", escape(title));
    for ((name, _, text), length) in bars.iter().zip(lengths) {
        let own = if name.starts_with("haystore") { " own" } else { "" };
        let _ = writeln!(
            out,
            "<div>{}</div><div class=\"track\"><div class=\"bar{own}\" style=\"width:{length:.2}%\"></div><span class=\"value\">{}</span></div>",
            escape(name),
            escape(text)
        );
    }
    out.push_str("</div>\n");
}

fn seconds(value: Option<f64>) -> Option<(f64, String)> {
    value.map(|s| (s, format!("{s:.2} s")))
}

fn charts(out: &mut String, report: &Report) {
    let raw = report.survey.sum.bytes;
    chart(out, report, ("Bytes at rest", Scale::Linear), |s| {
        s.stored_bytes.map(|bytes| (bytes as f64, format!("{} ({})", size(bytes), ratio(raw, bytes))))
    });
    chart(out, report, ("Ingest, CPU seconds", Scale::Linear), |s| seconds(s.ingest.and_then(|i| i.cpu_s)));
    chart(out, report, ("Ingest, wall clock", Scale::Linear), |s| seconds(s.ingest.map(|i| i.wall_s)));
    for sort in table::sorts(report) {
        let what = match sort {
            Sort::Token => "a rare word",
            Sort::Substring => "the inside of a word",
            Sort::Absent => "what is not there",
            Sort::Given => "the strings given",
        };
        let title = format!("Search for {what}, median, logarithmic");
        chart(out, report, (&title, Scale::Log), |s| s.needle_ms(sort).map(|ms| (ms, format!("{} ms", table::milliseconds(Some(ms))))));
    }
    chart(out, report, ("Read everything, wall clock", Scale::Linear), |s| seconds(s.full.map(|f| f.step.wall_s)));
    chart(out, report, ("Read everything, CPU seconds", Scale::Linear), |s| seconds(s.full.and_then(|f| f.step.cpu_s)));
}

fn keeps(out: &mut String, report: &Report) {
    out.push_str("<h2>What each store keeps</h2>\n<div class=\"wide\"><table>\n<tr>");
    for name in ["store", "bytes", "order", "substring", "token", "fields", "answers", "how"] {
        let _ = write!(out, "<th>{name}</th>");
    }
    out.push_str("</tr>\n");
    for store in &report.stores {
        let k = &store.keeps;
        let (bytes, order, substring, token) = (k.bytes.name(), k.order.name(), k.substring.name(), k.token.name());
        out.push_str("<tr>");
        for cell in [store.name, bytes, order, substring, token, k.fields, store.verdict(), k.how] {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn differences(out: &mut String, report: &Report) {
    let told =
        |s: &Store| s.differences().into_iter().chain(s.errors.clone()).map(|line| format!("{}: {line}", s.name)).collect::<Vec<_>>();
    let all: Vec<String> = report.stores.iter().flat_map(told).collect();
    if all.is_empty() {
        out.push_str("<p>Every answer is the same as that of a plain scan.</p>\n");
        return;
    }
    out.push_str("<h2>Where answers differ from a plain scan</h2>\n<ul>\n");
    for line in all {
        let _ = writeln!(out, "<li>{}</li>", escape(&line));
    }
    out.push_str("</ul>\n");
}

/// The page.
pub fn page(report: &Report) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Log stores compared</title>\n<style>\n{STYLE}\n</style>\n<h1>Log stores compared</h1>\n<p>{}</p>\n",
        escape(&table::input(report))
    );
    for sort in table::sorts(report) {
        let needles = escape(&table::needles(report, sort));
        let _ = writeln!(out, "<p>Needles, {} (lines that hold them): <code>{needles}</code></p>", sort.name());
    }
    charts(&mut out, report);
    keeps(&mut out, report);
    differences(&mut out, report);
    out.push_str("</html>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
        let page = page(&sample());
        for wrong in ["<script>", "<a&b>", "<file>", "http://", "https://"] {
            assert!(!page.contains(wrong), "{wrong}");
        }
        assert!(page.contains("words: &lt;script&gt;") && page.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        assert_eq!(lengths(&[1.0, 2.0, 0.0], Scale::Linear), [35.0, 70.0, 0.0]);
        let log = lengths(&[0.1, 1.0, 1000.0], Scale::Log);
        assert!(log[0] > 0.0 && log[0] < log[1] && log[1] < log[2] && (log[2] - 70.0).abs() < 1e-9, "{log:?}");
        assert_eq!(lengths(&[5.0], Scale::Log), [70.0]);
    }
}

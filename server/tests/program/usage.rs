//! The program in the hands of someone new: what goes wrong is said in one line that helps.

use crate::support::{Folder, START_MAX, assert_same, code, program, said};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Runs `words`, which must fail with one line that holds `help`.
#[track_caller]
fn fails(folder: &Folder, words: &[&str], help: &str) {
    let output = folder.run(words);
    assert_eq!(code(&output), 1, "{words:?}: {}", said(&output));
    assert!(output.stdout.is_empty() && said(&output).contains(help), "{words:?}: {}", said(&output));
    assert_eq!(said(&output).lines().count(), 1, "{words:?}: {}", said(&output));
}

#[test]
fn reading_makes_no_store_and_says_so() {
    let folder = Folder::new();
    for words in [&["scan"][..], &["search", "x"], &["du"], &["verify"], &["compact"]] {
        fails(&folder, words, "there is no store at ./haystore-data");
        fails(&folder, &[words, &["--store", "elsewhere"]].concat(), "there is no store at elsewhere");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    folder.write("a.log", b"a\n");
    folder.ok(&["ingest", "--store", "elsewhere", "a.log"]);
    assert_eq!(folder.ok(&["scan", "--store", "elsewhere"]), b"a\n");
    assert_eq!(folder.ok(&["scan", "--store", &format!("file://{}", folder.path().join("elsewhere").display())]), b"a\n");
    fails(&folder, &["scan", "--store", "a.log"], "a.log");
    fails(&folder, &["ingest", "--store", "a.log", "a.log"], "a.log");
    fails(&folder, &["scan", "--store", "s4://x"], "known are");
}

/// Takes from everyone the right to write in `dir` and the folders below, or gives it to the owner.
fn let_write(dir: &std::path::Path, allowed: bool) {
    let mode = |allowed| std::os::unix::fs::PermissionsExt::from_mode(if allowed { 0o755 } else { 0o555 });
    std::fs::set_permissions(dir, mode(true)).unwrap();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        let_write(&entry.path(), allowed);
    }
    std::fs::set_permissions(dir, mode(allowed)).unwrap();
}

#[test]
fn a_store_without_permission_is_refused_at_once_with_a_hint() {
    use std::os::unix::{fs::MetadataExt, process::CommandExt};
    let folder = Folder::new();
    folder.write("a.log", b"a\n");
    folder.ok(&["ingest", "a.log"]);
    // For the superuser permissions mean nothing: then somebody else runs a copy of the program.
    let root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    let copy = folder.path().join("haystore");
    std::fs::copy(env!("CARGO_BIN_EXE_haystore"), &copy).unwrap();
    let_write(folder.path(), false);
    let begin = Instant::now();
    let mut command = std::process::Command::new(&copy);
    command.args(["ingest", "a.log"]).current_dir(folder.path()).stdin(Stdio::null());
    if root {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    let took = begin.elapsed();
    let_write(folder.path(), true);
    assert_eq!(code(&output), 1, "{}", said(&output));
    assert!(said(&output).contains("ermission denied") && said(&output).contains("let the user that runs"), "{}", said(&output));
    assert!(!said(&output).contains("attempts") && took < Duration::from_secs(2), "{took:?}: {}", said(&output));
    assert_eq!(folder.ok(&["scan"]), b"a\n");
}

/// The first segment file below `dir`.
fn segment_in(dir: &std::path::Path) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter_map(|path| if path.is_dir() { segment_in(&path) } else { path.extension()?.eq("haystore").then_some(path) }).next()
}

#[test]
fn inspect_shows_templates_and_compact_writes_again() {
    let folder = Folder::new();
    let lines: String = (0..5000).map(|i| format!("12:00:{:02} user {} got {:016x}\n", i % 60, i % 900, i * 0x1_2345_6789u64)).collect();
    folder.write("a.log", lines.as_bytes());
    folder.ok(&["ingest", "--timestamps", "none", "a.log"]);
    let inspect = || {
        let segment = segment_in(&folder.path().join("haystore-data/segments")).unwrap();
        String::from_utf8(folder.ok(&["inspect", &segment.to_string_lossy()])).unwrap()
    };
    assert!(inspect().contains("5,000  <time> user <int> got <hex16>\n"), "{}", inspect());
    for words in [&["compact", "--level", "19"][..], &["compact", "--archive"]] {
        folder.ok(&[words, &["--grace", "0s"]].concat());
        folder.ok(&["compact", "--grace", "0s"]);
        assert_same(&folder.ok(&["scan"]), lines.as_bytes(), "after compact");
        assert!(inspect().contains("5,000 "), "{}", inspect());
    }
    fails(&folder, &["inspect", "a.log"], "not a segment");
    fails(&folder, &["inspect", "b.log"], "cannot open b.log");
}

#[test]
fn compact_deletes_what_was_never_published_once_it_is_old() {
    let folder = Folder::new();
    folder.write("a.log", b"a\n");
    folder.ok(&["ingest", "a.log"]);
    let segments = folder.store().join("segments/level0");
    let live: Vec<_> = std::fs::read_dir(&segments).unwrap().map(|entry| entry.unwrap().path()).collect();
    let orphan = segments.join(format!("{:032x}.haystore", 7));
    std::fs::copy(&live[0], &orphan).unwrap();
    let compact = || String::from_utf8(folder.ok(&["compact"])).unwrap();
    compact();
    assert!(orphan.exists());
    let old = std::time::SystemTime::now() - Duration::from_secs(25 * 3600);
    for path in live.iter().chain([&orphan]) {
        std::fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
    }
    let told = compact();
    assert!(told.contains("1 object never published"), "{told}");
    assert!(!orphan.exists());
    assert_eq!(folder.ok(&["scan"]), b"a\n");
    folder.ok(&["verify"]);
}

#[test]
fn a_second_server_and_a_taken_port_are_refused_with_a_hint() {
    let folder = Folder::new();
    let server = folder.serve(&[]);
    fails(&folder, &["serve", "--listen", "127.0.0.1:0"], "is another haystore running on it?");
    fails(&folder, &["serve", "--listen", server.address(), "--store", "other"], "cannot listen on");
    let output = folder.run(&["serve", "--listen", "nonsense"]);
    assert!(code(&output) == 2 && said(&output).contains("127.0.0.1:7171"), "{}", said(&output));
    server.client().post("/api/v1/ingest?format=lines", &[], b"still there").ok();
    assert_same(&server.client().scan(), b"still there\n", "the first");
    server.stop();
}

#[test]
fn a_server_shows_what_others_put_into_its_store() {
    let folder = Folder::new();
    let server = folder.serve(&["--flush-age", "1d"]);
    server.client().post("/api/v1/ingest?format=lines&timestamps=none", &[], b"by HTTP").ok();
    folder.write("a.log", b"by file\n");
    folder.ok(&["ingest", "a.log"]);
    let begin = Instant::now();
    let found = |words: &[&str]| folder.run(&[&["search"][..], words].concat()).stdout;
    while found(&["by file", "--server", server.address()]) != b"by file\n" {
        assert!(begin.elapsed() < Duration::from_secs(20), "the server does not see the file");
        std::thread::sleep(Duration::from_millis(50));
    }
    // What it holds in memory only the server shows; its store can be read beside it all the while.
    assert_eq!(found(&["by"]), b"by file\n");
    assert_eq!(found(&["by", "--server", server.address()]), b"by HTTP\nby file\n");
    folder.ok(&["compact"]);
    assert_eq!(found(&["by", "--server", server.address()]), b"by HTTP\nby file\n");
    folder.ok(&["verify"]);
    server.stop();
    assert_eq!(found(&["by"]), b"by HTTP\nby file\n");
}

#[test]
fn a_server_stops_at_a_signal_and_flushes() {
    let folder = Folder::new();
    for signal in ["TERM", "INT"] {
        let server = folder.serve(&["--flush-age", "1d"]);
        assert!(server.start_took < START_MAX);
        server.client().post("/api/v1/ingest?format=lines&timestamps=none", &[], signal.as_bytes()).ok();
        crate::support::signal(signal, server.pid());
        let log = server.stop();
        assert!(log.contains("stopping") && log.contains("stopped"), "{log}");
    }
    assert_eq!(folder.ok(&["scan"]), b"TERM\nINT\n");
}

#[test]
fn files_that_fail_do_not_hold_up_the_others() {
    let folder = Folder::new();
    folder.write("good.log", b"good\n");
    let packed = zstd::encode_all(&b"some text to be packed ".repeat(1000)[..], 1).unwrap();
    folder.write("cut.log.zst", &packed[..packed.len() / 2]);
    let output = folder.run(&["ingest", "*"]);
    assert_eq!(code(&output), 1);
    assert!(said(&output).contains("error: cut.log.zst: ") && said(&output).contains("1 of 2 files failed"), "{}", said(&output));
    assert_eq!(folder.ok(&["scan"]), b"good\n");
    fails(&folder, &["ingest", "good.log", "missing.log"], "cannot read missing.log");
    fails(&folder, &["ingest", "."], "is a folder; name its files");
    fails(&folder, &["ingest", "*.none"], "no file matches");
    fails(&folder, &["ingest", "-", "-"], "only once");
    fails(&folder, &["ingest", "--timestamps", "none", "--time-field", "t", "good.log"], "no meaning");
    assert_eq!(folder.ok(&["scan"]), b"good\n");
}

#[test]
fn wrong_queries_and_times_name_the_place() {
    let folder = Folder::new();
    folder.write("a.log", b"a\n");
    folder.ok(&["ingest", "a.log"]);
    let server = folder.serve(&[]);
    for place in [&[][..], &["--server", server.address()]] {
        let with = |words: &[&'static str]| [words, place].concat();
        fails(&folder, &with(&["search", "{a="]), "line 1, col");
        fails(&folder, &with(&["search", "{} | json"]), "not supported yet");
        fails(&folder, &with(&["search", "{} |~ \"(\""]), "regex");
        fails(&folder, &with(&["scan", "--from", "tomorrow"]), "--from");
        fails(&folder, &with(&["scan", "--from", "2024-01-02", "--to", "2024-01-01"]), "--to does not lie behind --from");
        fails(&folder, &with(&["scan", "--after", "zz"]), "--after");
        assert_eq!(code(&folder.run(&with(&["search", "a", "--limit", "0"]))), 2);
        assert_eq!(code(&folder.run(&with(&["search", "nothing"]))), 3);
    }
    server.stop();
}

/// The commands that README's tour shows, on files like those it names.
#[test]
fn the_tour_of_the_readme_works() {
    let folder = Folder::new();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, b"2024-03-01T00:00:01Z error: request 5bc13f\n").unwrap();
    folder.write("logs/a.log.gz", &gz.finish().unwrap());
    folder.write("app.log", b"2024-03-01T00:00:02Z error: all is well\n");
    folder.ok(&["ingest", "--label", "app=shop", "logs/*.log.gz"]);
    let output =
        folder.feed(&["ingest", "--format", "ndjson", "-"], b"{\"__REALTIME_TIMESTAMP\":\"1709251203000000\",\"MESSAGE\":\"m\"}\n");
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert_eq!(folder.ok(&["search", "request 5bc13f"]), b"2024-03-01T00:00:01Z error: request 5bc13f\n");
    assert_eq!(code(&folder.run(&["search", "{app=\"shop\"} |= \"error\" != \"timeout\"", "--from", "now-1h"])), 3);
    assert_eq!(folder.ok(&["scan", "{app=\"shop\"}"]).len(), 43);
    assert_eq!(folder.ok(&["scan", "--output", "ndjson"]).iter().filter(|&&b| b == b'\n').count(), 2);
    for words in [&["du", "--columns"][..], &["verify"], &["compact"]] {
        assert!(!folder.ok(words).is_empty(), "{words:?}");
    }
    let server = folder.serve(&[]);
    folder.ok(&["ingest", "--server", &format!("http://{}", server.address()), "app.log"]);
    let found = server.client().get("/api/v1/search?query=error&limit=10").ok().text();
    assert_eq!(found.lines().count(), 2, "{found}");
    let query = crate::support::quoted("{filename=\"app.log\"} |= \"error\"");
    let json = server.client().get(&format!("/loki/api/v1/query_range?start=0&query={query}")).ok().json();
    assert_eq!(json["data"]["result"][0]["values"][0][1], "2024-03-01T00:00:02Z error: all is well");
}

#[test]
fn a_pipe_that_closes_ends_a_scan_quietly() {
    let folder = Folder::new();
    folder.write("a.log", &b"a line that is long enough to fill the pipe soon\n".repeat(50_000));
    folder.ok(&["ingest", "a.log"]);
    let mut scan = program(&["scan"]).current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(scan.stdout.take());
    let output = scan.wait_with_output().unwrap();
    assert_eq!((code(&output), said(&output)), (0, String::new()));
}

/// docs/edge-cases.md names tests; each must be there.
#[test]
fn every_test_that_the_edge_cases_name_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut sources = String::new();
    let mut folders = vec![root.join("server"), root.join("engine"), root.join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                sources.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let table = std::fs::read_to_string(root.join("docs/edge-cases.md")).unwrap();
    let rows = table.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| case"));
    let mut tests = 0;
    for row in rows {
        let shown = row.split('|').nth(2).unwrap();
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() || shown.contains("later:"), "neither a test nor later: {row}");
        for name in &names {
            let function = name.rsplit("::").next().unwrap();
            assert!(sources.contains(&format!("fn {function}(")), "no test {name}: {row}");
        }
        tests += names.len();
    }
    assert!(tests > 40, "{tests}");
}

//! Arguments to files: globs expanded, standard input recognised, sizes looked up.

use anyhow::{Context, Result, bail};
use globset::{GlobBuilder, GlobMatcher};
use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file; `None` is standard input.
    pub path: Option<PathBuf>,
    /// Its size at rest; 0 when it has none.
    pub bytes: u64,
}

impl Source {
    /// The name shown to people, and the label `filename`.
    pub fn name(&self) -> String {
        self.path.as_ref().map_or_else(|| "standard input".into(), |p| p.to_string_lossy().into_owned())
    }

    /// Opens it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match &self.path {
            Some(path) => Box::new(fs::File::open(path)?),
            None => Box::new(io::stdin()),
        })
    }
}

/// The files that `inputs` name, in the order given, those of a glob sorted, each once.
///
/// # Errors
/// A file that does not exist, a folder, a glob that matches nothing, standard input twice.
pub fn expand(inputs: &[String]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut seen = HashSet::new();
    for input in inputs {
        if input == "-" {
            if sources.iter().any(|s: &Source| s.path.is_none()) {
                bail!("standard input (-) can be read only once");
            }
            sources.push(Source { path: None, bytes: 0 });
            continue;
        }
        let path = Path::new(input);
        let is_glob = input.contains(['*', '?', '[', '{']) && !path.exists();
        let paths = if is_glob { glob(input)? } else { vec![path.to_path_buf()] };
        for path in paths {
            let meta = fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
            if meta.is_dir() {
                bail!("{0} is a folder; name its files, or quote a glob like '{0}/**/*.log'", path.display());
            }
            let identity = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if seen.insert(identity) {
                sources.push(Source { bytes: if meta.is_file() { meta.len() } else { 0 }, path: Some(path) });
            }
        }
    }
    Ok(sources)
}

fn glob(pattern: &str) -> Result<Vec<PathBuf>> {
    let matcher = GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|e| anyhow::anyhow!("{pattern:?} is no valid glob: {}", e.kind()))?
        .compile_matcher();
    let mut base = PathBuf::new();
    let mut parts_left = 0;
    for part in Path::new(pattern) {
        if parts_left > 0 || part.to_string_lossy().contains(['*', '?', '[', '{']) {
            parts_left += 1;
        } else {
            base.push(part);
        }
    }
    // `**` matches folders of any depth, alternatives may hold separators.
    let depth_max = if pattern.contains("**") || pattern.contains('{') { usize::MAX } else { parts_left };
    let mut found = Vec::new();
    walk(&base, depth_max, &matcher, &mut found)?;
    if found.is_empty() {
        bail!("no file matches {pattern:?}");
    }
    found.sort();
    Ok(found)
}

/// Adds the files below `base` that match. Folders behind symbolic links are not entered.
fn walk(base: &Path, depth_max: usize, matcher: &GlobMatcher, found: &mut Vec<PathBuf>) -> Result<()> {
    let mut folders = vec![(base.to_path_buf(), depth_max)];
    while let Some((folder, depth)) = folders.pop() {
        let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        let entries = match fs::read_dir(listed) {
            Ok(entries) => entries,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
            Err(e) => return Err(e).with_context(|| format!("cannot list {}", listed.display())),
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", listed.display()))?;
            let path = folder.join(entry.file_name());
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                if depth > 1 {
                    folders.push((path, depth - 1));
                }
            } else if matcher.is_match(&path) && fs::metadata(&path).is_ok_and(|m| m.is_file()) {
                found.push(path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);
    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn folder() -> Folder {
        let path = std::env::temp_dir().join(format!("haystore-files-{}", std::process::id()));
        fs::create_dir_all(path.join("b/c")).unwrap();
        for name in ["2.log", "1.log", "x.txt", "[odd].log", "b/3.log", "b/c/4.log"] {
            fs::write(path.join(name), name).unwrap();
        }
        Folder(path)
    }

    #[test]
    fn globs_literals_and_standard_input() {
        let folder = folder();
        let names = |inputs: &[&str]| -> Result<Vec<String>> {
            let inputs: Vec<String> =
                inputs.iter().map(|i| if *i == "-" { "-".into() } else { folder.0.join(i).to_string_lossy().into_owned() }).collect();
            let prefix = format!("{}/", folder.0.display());
            Ok(expand(&inputs)?.iter().map(|s| s.name().replace(&prefix, "")).collect())
        };
        assert_eq!(names(&["*.log"]).unwrap(), ["1.log", "2.log", "[odd].log"]);
        assert_eq!(names(&["**/*.log"]).unwrap(), ["1.log", "2.log", "[odd].log", "b/3.log", "b/c/4.log"]);
        assert_eq!(names(&["b/*.log", "b/3.log", "x.txt", "-"]).unwrap(), ["b/3.log", "x.txt", "standard input"]);
        assert_eq!(names(&["[odd].log"]).unwrap(), ["[odd].log"]);
        assert_eq!(names(&["{1,2}.log"]).unwrap(), ["1.log", "2.log"]);
        for wrong in [&["*.none"][..], &["b"], &["missing"], &["-", "-"], &["[z-a]"]] {
            assert!(names(wrong).is_err(), "{wrong:?}");
        }
        let file = expand(&[folder.0.join("x.txt").to_string_lossy().into_owned()]).unwrap();
        assert_eq!(file[0].bytes, 5);
    }
}

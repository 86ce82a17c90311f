//! The project's own source files, for the tests that read them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns all Rust files below a folder.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 3, "{}: no sources here", folder.display());
    found
}

/// Returns the names of all our tests.
pub fn test_names() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [root.join("src"), root.join("tests/it")];
    let files = folders.iter().flat_map(|folder| rust_files(folder));
    files.flat_map(|file| tests_in(&file)).collect()
}

fn tests_in(file: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in fs::read_to_string(file).unwrap().lines() {
        let line = line.trim();
        let words = line.trim_start_matches("async ");
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = words.strip_prefix("fn ") {
            let name = rest.split('(').next().unwrap();
            names.extend(is_test.then(|| name.to_owned()));
            is_test = false;
        }
    }
    names
}

/// Returns the names of the official conformance suite's scenarios.
pub fn conformance_scenarios() -> BTreeSet<String> {
    first_words("tests/conformance/scenarios.txt")
}

/// Returns the names of the parts of `tests/run`.
pub fn test_parts() -> BTreeSet<String> {
    first_words("tests/parts.tsv")
}

fn first_words(file: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

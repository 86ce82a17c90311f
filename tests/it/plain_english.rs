//! The language of the project, measured: phrases that mark hard sentences, counted in comments and in texts for users.
//!
//! A count is a hint and not a verdict, so some are allowed: honest English has a few.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::source::rust_files;

/// The most marker phrases in 1,000 words of the comments of a crate.
const MOST_IN_COMMENTS: usize = 5;
/// The most marker phrases in 1,000 words of a text that users read.
const MOST_IN_TEXTS: usize = 3;
/// Texts with fewer words are not measured: one phrase would decide.
const FEWEST_WORDS: usize = 300;

/// The phrases: words separated by a space, alternatives of a word by `|`.
const MARKERS: &[&str] = &[
    "whoever|whomever|whom|whose",
    "nobody|somebody|everybody|anybody",
    "stand|stands|stood",
    "hear|hears|heard|tell|tells|told|say|says|said",
    "so many|much|long|far|often|soon",
    "what is|was|were|are|it|they|there|has|had|came|comes",
    "that which is|was|were|are|it|they|there|has|had|came|comes",
    "of|in|to|by|from|behind|with|on|for|without which|whom",
    "is|are|was|were to be|have|go|come|end|run|hear",
    "come|comes|let|lets in",
    "go|goes|gone on",
    "alone|anew|besides|beneath|thereof|meanwhile|till|lest",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the number of words and of marker phrases in a text.
fn measure(text: &str) -> (usize, usize) {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphabetic() && c != '\'' && c != '-')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
        .collect();
    let is_at = |marker: &str, at: usize| {
        marker.split(' ').enumerate().all(|(offset, choices)| {
            let word = words.get(at + offset);
            word.is_some_and(|word| choices.split('|').any(|choice| choice == *word))
        })
    };
    let found = (0..words.len())
        .flat_map(|at| MARKERS.iter().filter(move |marker| is_at(marker, at)))
        .count();
    (words.len(), found)
}

/// Checks one text; returns what is wrong with it.
fn too_many(name: &str, text: &str, most: usize) -> Option<String> {
    let (words, found) = measure(text);
    (words >= FEWEST_WORDS && found * 1000 > most * words).then(|| {
        let rate = found * 1000 / words;
        format!("{name}: {rate} marker phrases in 1,000 of {words} words, at most {most}")
    })
}

/// Returns the comments of a Rust file.
fn comments(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter_map(|line| {
        let comment = line.trim_start().strip_prefix("//")?;
        Some(comment.trim_start_matches(['/', '!']))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the files of a folder.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).collect()
}

#[test]
fn comments_are_plain_english() {
    let mut wrong = Vec::new();
    let crates = fs::read_dir(root().join("src")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = crates.filter(|path| path.is_dir()).collect();
    folders.extend(["tests/it", "tests/bench"].map(|folder| root().join(folder)));
    assert!(folders.len() > 10, "{folders:?}");
    for folder in folders {
        let texts = rust_files(&folder).into_iter().map(|path| comments(&path));
        let text = texts.collect::<Vec<_>>().join("\n");
        wrong.extend(too_many(
            &folder.display().to_string(),
            &text,
            MOST_IN_COMMENTS,
        ));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn texts_for_users_are_plain_english() {
    let mut paths: Vec<PathBuf> = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ]
    .map(|name| root().join(name))
    .into();
    paths.extend(files("packaging/man"));
    paths.extend(files("etc"));
    let mut wrong = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        // Comments of a manual page's source are not shown.
        let shown = text.lines().filter(|line| !line.starts_with(".\\\""));
        let text = shown.collect::<Vec<_>>().join("\n");
        wrong.extend(too_many(&path.display().to_string(), &text, MOST_IN_TEXTS));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn hard_sentences_are_counted() {
    let hard = "Whoever is let in by somebody, of which nothing is told, is to be ended so long as it stands.";
    assert_eq!(measure(hard).1, 8);
    let plain = "The server rejects a request without a token and closes the connection.";
    assert_eq!(measure(plain).1, 0);
}

//! The table of the original documents' sentences (`tests/seeds.md`): complete, and each names what exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::support::source::{conformance_scenarios, test_names, test_parts};

/// A row of the table: a sentence, and what shows that it holds.
struct Sentence {
    number: String,
    places: Vec<String>,
    ways: Vec<(String, String)>,
}

/// What a way may name.
struct KnownNames {
    tests: BTreeSet<String>,
    scenarios: BTreeSet<String>,
    parts: BTreeSet<String>,
}

impl KnownNames {
    fn read() -> Self {
        Self {
            tests: test_names(),
            scenarios: conformance_scenarios(),
            parts: test_parts(),
        }
    }

    /// Returns whether a way names something that exists, or has a reason.
    fn has(&self, kind: &str, words: &str) -> bool {
        match kind {
            "test" => self.tests.contains(words),
            "suite" => self.scenarios.contains(words),
            "part" => self.parts.contains(words),
            "otherwise" | "open" | "context" => words.len() > 10,
            _ => false,
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> String {
    fs::read_to_string(root().join("tests/seeds.md")).unwrap()
}

/// Returns the cells of each row of a table, without the row of titles.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.map(|row| row.trim_end_matches(" |").split(" | ").collect::<Vec<_>>());
    rows.filter(|cells| !["document", "no"].contains(&cells[0]))
}

/// Returns the number of sentences of each document, from the head of the table.
fn counts(text: &str) -> BTreeMap<String, usize> {
    let (head, _) = text.split_once("\n## ").unwrap();
    let counts = rows(head).map(|cells| (cells[0].to_owned(), cells[2].parse().unwrap()));
    counts.collect()
}

fn sentences(text: &str) -> Vec<Sentence> {
    let (_, body) = text.split_once("\n## ").unwrap();
    rows(body).map(|cells| sentence(&cells)).collect()
}

fn sentence(cells: &[&str]) -> Sentence {
    let [number, words, places, ways] = cells else {
        panic!("four cells a row: {cells:?}");
    };
    let quoted = words.strip_prefix('“').and_then(|w| w.strip_suffix('”'));
    assert!(quoted.is_some_and(|w| w.len() > 5), "{number}: {words}");
    let ways = ways.split("; ").map(|way| {
        let (kind, words) = way.split_once(": ").unwrap_or((way, ""));
        (kind.to_owned(), words.trim_matches('`').to_owned())
    });
    let places = places.split("; ").filter(|place| *place != "–");
    Sentence {
        number: (*number).to_owned(),
        places: places.map(str::to_owned).collect(),
        ways: ways.collect(),
    }
}

/// Returns whether a file in backquotes exists, or a man page such as `page(7) "SECTION"` has that section.
fn exists(place: &str) -> bool {
    if let Some(path) = place.strip_prefix('`').and_then(|p| p.strip_suffix('`')) {
        return root().join(path).exists();
    }
    let Some((page, section)) = place.split_once(") \"") else {
        return false;
    };
    let page = root().join("packaging/man").join(page.replace('(', "."));
    let page = fs::read_to_string(page).unwrap_or_default();
    let section = section.trim_end_matches('"');
    let titles = [format!(".Sh {section}"), format!(".Ss {section}")];
    page.lines().any(|line| titles.iter().any(|t| t == line))
}

/// Returns what is wrong with a row.
fn faults(row: &Sentence, known: &KnownNames) -> Vec<String> {
    let places = row.places.iter().filter(|place| !exists(place));
    let mut faults: Vec<String> = places.map(|place| format!("no {place}")).collect();
    let ways = row
        .ways
        .iter()
        .filter(|(kind, words)| !known.has(kind, words));
    faults.extend(ways.map(|(kind, words)| format!("no {kind} {words}")));
    let is_shown = |(kind, _): &(String, String)| ["test", "suite", "part"].contains(&&**kind);
    if row.ways.iter().any(is_shown) && row.places.is_empty() {
        faults.push("a test, but no place".to_owned());
    }
    faults
        .iter()
        .map(|fault| format!("{}: {fault}", row.number))
        .collect()
}

#[test]
fn every_sentence_of_the_documents_has_a_row() {
    let text = table();
    let counts = counts(&text);
    let documents: Vec<&str> = counts.keys().map(String::as_str).collect();
    assert_eq!(documents, ["000", "001", "002", "003", "004"]);
    let expected = counts
        .iter()
        .flat_map(|(document, count)| (1..=*count).map(move |n| format!("{document}.{n:02}")));
    let found = sentences(&text).into_iter().map(|row| row.number);
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn every_row_names_what_exists_or_a_reason() {
    let known = KnownNames::read();
    let rows = sentences(&table());
    let faults: Vec<String> = rows.iter().flat_map(|row| faults(row, &known)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_row_that_names_nothing_is_found() {
    let known = KnownNames::read();
    let good = "test: `every_row_names_what_exists_or_a_reason`";
    let count = |place: &str, way: &str| {
        let row = sentence(&["000.01", "“some words”", place, way]);
        faults(&row, &known).len()
    };
    assert_eq!(
        count("`tests/seeds.md`; gatewren.toml(5) \"KEYS\"", good),
        0
    );
    assert_eq!(count("`tests/none.md`", good), 1);
    assert_eq!(count("gatewren.toml(5) \"NONE\"", good), 1);
    assert_eq!(count("gatewren.none(5) \"KEYS\"", good), 1);
    assert_eq!(count("–", good), 1, "a test is about something");
    for way in [
        "test: `no_such_test`",
        "suite: none",
        "part: none",
        "open",
        "",
        "else: words of a reason",
    ] {
        assert!(count("`tests/seeds.md`", way) > 0, "{way}");
    }
}

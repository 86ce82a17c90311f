//! The checklist of the specification's rules (`src/protocol/checklist.md`): each rule names an existing check.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::support::source::{conformance_scenarios, test_names};

/// A row of the checklist.
struct Rule {
    id: String,
    ways: Vec<(String, String)>,
}

/// The allowed kinds of checks, which precede the colon.
const WAYS: [&str; 3] = ["test", "suite", "not done"];

/// The levels of the specification, and our own.
const LEVELS: [&str; 6] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "may", "own"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rules() -> Vec<Rule> {
    let text = fs::read_to_string(root().join("src/protocol/checklist.md")).unwrap();
    let rules: Vec<Rule> = text.lines().filter_map(rule).collect();
    assert!(rules.len() > 150, "{} rules were found", rules.len());
    rules
}

/// Parses a row; `None` for any other line and for table headers.
fn rule(line: &str) -> Option<Rule> {
    let row = line.strip_prefix("| ")?;
    let cells: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
    if cells[0] == "id" {
        return None;
    }
    let [id, level, revisions, words, source, shown] = cells[..] else {
        panic!("six cells a row: {line}");
    };
    assert!(LEVELS.contains(&level), "{id}: no such level: {level}");
    assert!(!revisions.is_empty() && !source.is_empty(), "{line}");
    assert!(words.ends_with('.'), "{id}: a rule is a sentence: {words}");
    let ways = shown.split("; ").map(|way| {
        let (kind, name) = way.split_once(": ").unwrap_or((way, ""));
        (kind.to_owned(), name.trim_matches('`').to_owned())
    });
    Some(Rule {
        id: id.to_owned(),
        ways: ways.collect(),
    })
}

/// Returns whether the test's name begins with ids that include this one.
fn carries(test: &str, id: &str) -> bool {
    let is_id = |part: &&str| {
        let (letter, number) = part.split_at(1);
        letter.bytes().all(|b| b.is_ascii_lowercase())
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
    };
    let mut ids = test.split('_').filter(|p| !p.is_empty()).take_while(is_id);
    ids.any(|part| part.eq_ignore_ascii_case(id))
}

#[test]
fn every_rule_stands_once_and_none_is_left_out() {
    let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for rule in rules() {
        let (letter, number) = rule.id.split_at(1);
        let number = number.parse().unwrap();
        numbers.entry(letter.to_owned()).or_default().push(number);
    }
    for (letter, numbers) in numbers {
        let expected: Vec<usize> = (1..=numbers.len()).collect();
        assert_eq!(numbers, expected, "{letter}");
    }
}

#[test]
fn every_rule_has_a_way_that_exists() {
    let tests = test_names();
    let scenarios = conformance_scenarios();
    let mut wrong = Vec::new();
    for Rule { id, ways } in rules() {
        for (kind, name) in ways {
            let holds = match kind.as_str() {
                "test" => tests.contains(&name) && carries(&name, &id),
                "suite" => scenarios.contains(&name),
                "not done" => name.len() > 10,
                _ => WAYS.contains(&kind.as_str()) && name.is_empty(),
            };
            if !holds {
                wrong.push(format!("{id}: {kind}: {name}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "no such test of that id, no such scenario, or no such way:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_test_that_carries_an_id_is_named_by_the_checklist() {
    let tests = test_names();
    for Rule { id, ways } in rules() {
        for test in tests.iter().filter(|test| carries(test, &id)) {
            let named = ways.iter().any(|(_, name)| name == test);
            assert!(named, "{id} does not name {test}");
        }
    }
}

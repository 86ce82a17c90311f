//! The page about threats claims only what is tested: each test, setting, command and file that it names exists.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::manual::Manual;

fn page() -> Manual {
    Manual::named("gatewren-security.7")
}

/// What `gatewren` prints for these words.
fn printed(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(words)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a file has a test of this name.
fn has_test(file: &str, name: &str) -> bool {
    // A file of src is named with its path.
    let file = if file.contains('/') {
        file.to_owned()
    } else {
        format!("tests/it/{file}.rs")
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let source = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let test = format!("fn {name}()");
    let found = lines.iter().position(|line| {
        line.strip_prefix("async ")
            .unwrap_or(line)
            .starts_with(&test)
    });
    // The attribute stands right above, or above another one.
    found.is_some_and(|at| {
        let above = &lines[at.saturating_sub(3)..at];
        above
            .iter()
            .any(|line| *line == "#[test]" || line.starts_with("#[tokio::test"))
    })
}

/// The words of every `.Li` in a section's text, arguments of one joined.
fn literals(source: &str) -> Vec<String> {
    let lines = source.lines().filter(|line| !line.starts_with(".\\\""));
    let rests = lines.filter_map(|line| line.split_once("Li ").map(|(_, rest)| rest));
    rests
        .flat_map(|rest| rest.split(" , "))
        .map(|text| text.trim_end_matches([' ', ',', '.', ':', ';']).to_owned())
        .collect()
}

#[test]
fn every_test_that_a_claim_names_exists() {
    let source = page().source;
    let mut count = 0;
    for line in source.lines() {
        let Some(names) = line.strip_prefix(".\\\" tests: ") else {
            continue;
        };
        for name in names.split_whitespace() {
            let (file, test) = name.rsplit_once("::").unwrap();
            assert!(has_test(file, test), "there is no test {name}");
            count += 1;
        }
    }
    assert!(count > 50, "only {count} tests are named");
    assert!(!has_test("audit", "no_such_test"));
}

#[test]
fn every_claim_names_a_test() {
    let source = page().source;
    let (_, claims) = source.split_once(".Sh FROM THE NETWORK\n").unwrap();
    let (claims, _) = claims.split_once(".Sh WHAT IS NOT PROTECTED\n").unwrap();
    for section in claims.split(".Sh ") {
        let title = section.lines().next().unwrap_or_default();
        assert!(
            section.contains(".\\\" tests: "),
            "nothing shows what `{title}` says"
        );
    }
}

#[test]
fn every_setting_and_command_that_is_named_exists() {
    let source = page().source;
    let settings = printed(&["describe", "settings"]);
    let helper = printed(&["describe", "helper"]);
    let mut commands = 0;
    for text in literals(&source) {
        if let Some(words) = text.strip_prefix("gatewren ") {
            let mut words: Vec<&str> = words.split_whitespace().collect();
            words.push("--help");
            assert!(
                printed(&words).contains("Usage: "),
                "there is no command `{text}`"
            );
            commands += 1;
        } else if let Some((section, key)) = text.strip_prefix('[').and_then(|t| t.split_once("] "))
        {
            let (_, rest) = settings
                .split_once(&format!("\n[{section}]\n"))
                .unwrap_or_else(|| panic!("{text}"));
            let keys = rest.split("\n[").next().unwrap();
            assert!(
                keys.contains(&format!("\n#{key} = ")),
                "there is no setting {text}"
            );
        } else if text.starts_with('[') {
            assert!(
                settings.contains(&format!("\n{text}\n")),
                "there is no section {text}"
            );
        }
    }
    assert!(commands > 5, "only {commands} commands are named");
    for key in ["host_shell", "container_shell", "containers", "power"] {
        assert!(
            source.contains(&format!("Li {key}\n")) && helper.contains(&format!("#{key} = ")),
            "{key}"
        );
    }
}

#[test]
fn the_page_is_written_well() {
    page().is_written_well();
}

//! The man page about threats claims only what is tested: each test, setting, command and file that it names exists.

use std::fs;
use std::path::Path;

use crate::support::manual::{Manual, gatewren};

fn page() -> Manual {
    Manual::named("gatewren-security.7")
}

/// Returns whether a file has a test of this name.
fn has_test(file: &str, name: &str) -> bool {
    // A file in src is named with its path.
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
    // The attribute is directly above, or above one other attribute.
    found.is_some_and(|at| {
        let above = &lines[at.saturating_sub(3)..at];
        above
            .iter()
            .any(|line| *line == "#[test]" || line.starts_with("#[tokio::test"))
    })
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
    page().names_what_exists();
    let source = page().source;
    let helper = gatewren(&["describe", "helper"]);
    for key in ["host_shell", "container_shell", "containers", "power"] {
        assert!(
            source.contains(&format!("Li {key}\n")) && helper.contains(&format!("#{key} = ")),
            "{key}"
        );
    }
}

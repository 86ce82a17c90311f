//! The part of `changes_since` that is not in the state document: packages, files of `/etc`, logins and calls, in words.

use std::collections::{BTreeMap, BTreeSet};

use gatewren_base::sys::{neutralise, rfc3339};
use gatewren_host::backends::{LoginsFound, MachineChangesFound, MachinePackages, PackageChange};

/// The longest text of each part, in bytes. What does not fit is counted.
const PACKAGES_BYTES: usize = 1400;
const FILES_BYTES: usize = 900;
const CALLS_BYTES: usize = 500;

/// The most addresses and terminals that are named.
const MAX_SOURCES: usize = 8;

/// Calls of one agent with one tool about one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangingCalls {
    /// The agent's name.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The target, such as a container.
    pub target: Option<String>,
    /// How many.
    pub count: u64,
    /// The last one, in milliseconds since 1970.
    pub last_ms: u64,
}

/// Returns lines about packages, a line for each machine with changes.
pub fn package_lines(found: &MachineChangesFound) -> Vec<String> {
    let mut lines = Vec::new();
    let mut budget = PACKAGES_BYTES;
    for machine in &found.packages {
        let place = match &machine.container {
            Some(container) => container.to_string(),
            None => "host".to_owned(),
        };
        if budget == 0 {
            lines.push("packages of further containers are left out (update_history)".to_owned());
            break;
        }
        if let Some(line) = packages_of(&place, machine, budget) {
            budget = budget.saturating_sub(line.len());
            lines.push(line);
        }
    }
    lines
}

fn packages_of(place: &str, machine: &MachinePackages, budget: usize) -> Option<String> {
    let newest = machine.changes.iter().map(|change| change.at_ms).max()?;
    let words = machine.changes.iter().map(|change| {
        let PackageChange { name, from, to, .. } = change;
        match (from, to) {
            (Some(from), Some(to)) => format!("{name} {from} -> {to}"),
            (None, Some(to)) => format!("{name} {to} installed"),
            _ => format!("{name} removed"),
        }
    });
    let total = machine.changes.len();
    let list = joined(words, budget, "update_history");
    Some(format!(
        "packages of {place}, {total} changed: {list}; {}",
        rfc3339(newest)
    ))
}

/// Returns the line about files of `/etc`, if any changed.
pub fn file_lines(found: &MachineChangesFound) -> Vec<String> {
    let Some(files) = found.files.as_ref().filter(|files| files.total > 0) else {
        return Vec::new();
    };
    let words = files.files.iter().map(|file| {
        let path = neutralise(&file.path).into_owned();
        format!("{path} {}", rfc3339(file.at_ms))
    });
    let all = if files.complete { "" } else { "at least " };
    let line = joined(words, FILES_BYTES, "file_list");
    let hidden = files.total.saturating_sub(files.files.len());
    let hidden = match hidden {
        0 => String::new(),
        hidden => format!(", and {hidden} older ones"),
    };
    vec![format!(
        "files of /etc, {all}{} changed: {line}{hidden}",
        files.total
    )]
}

/// Returns the line about logins.
pub fn login_lines(found: &LoginsFound) -> Vec<String> {
    let (mut good, mut failed) = (0, 0);
    let (mut users, mut sources) = (BTreeSet::new(), BTreeSet::new());
    let (mut failed_from, mut kinds) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    for event in found.events.iter().map(|one| &one.event) {
        let source = event.from.as_ref().or(event.terminal.as_ref());
        if !event.success {
            failed += event.count;
            failed_from.extend(event.from.clone());
            continue;
        }
        good += 1;
        users.insert(event.user.clone());
        sources.extend(source.cloned());
        let kind = serde_json::to_value(event.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default().to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    if good == 0 && failed == 0 {
        return Vec::new();
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let named: Vec<String> = sources.iter().take(MAX_SOURCES).cloned().collect();
    let more = match sources.len().saturating_sub(MAX_SOURCES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let kinds = if kinds.is_empty() {
        String::new()
    } else {
        format!(
            " ({}) by {} users from {}{more}",
            kinds.join(", "),
            users.len(),
            named.join(", ")
        )
    };
    vec![format!(
        "logins: {good}{kinds}; {failed} failed from {} addresses; login_list lists them",
        failed_from.len()
    )]
}

/// Returns a line for each agent that changed something.
pub fn call_lines(calls: &[ChangingCalls]) -> Vec<String> {
    let mut agents: BTreeMap<&str, Vec<&ChangingCalls>> = BTreeMap::new();
    for call in calls {
        agents.entry(&call.agent).or_default().push(call);
    }
    let each = CALLS_BYTES / agents.len().max(1);
    let line = |(agent, calls): (&str, Vec<&ChangingCalls>)| {
        let last = calls.iter().map(|call| call.last_ms).max().unwrap_or(0);
        let words = calls.iter().map(|call| {
            let target = call.target.as_deref().unwrap_or_default();
            let times = match call.count {
                1 => String::new(),
                count => format!(" x{count}"),
            };
            let words = format!("{} {target}", call.tool);
            format!("{}{times}", neutralise(words.trim_end()))
        });
        format!(
            "calls of {}: {}; {}",
            neutralise(agent),
            joined(words, each, "state_blame"),
            rfc3339(last)
        )
    };
    let mut lines: Vec<String> = Vec::new();
    for one in agents {
        let line = line(one);
        let used: usize = lines.iter().map(String::len).sum();
        if used + line.len() > CALLS_BYTES * 2 {
            lines.push("calls of further agents are left out".to_owned());
            break;
        }
        lines.push(line);
    }
    lines
}

/// Joins words up to a size, and counts the others; `tool` shows them.
fn joined(words: impl Iterator<Item = String>, budget: usize, tool: &str) -> String {
    let (mut text, mut left_out) = (String::new(), 0);
    for word in words {
        if !text.is_empty() && text.len() + word.len() > budget || left_out > 0 {
            left_out += 1;
            continue;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&word);
    }
    if left_out > 0 {
        text += &[" and ", &left_out.to_string(), " more (", tool, ")"].concat();
    }
    text
}

#[cfg(test)]
mod tests {
    use gatewren_host::backends::{ChangedFile, ChangedFiles, LoginEvent, LoginKind, PlacedLogin};

    use super::*;

    #[test]
    fn each_part_is_bounded_and_counts_what_it_leaves_out() {
        let change = |number: usize| PackageChange {
            name: format!("package-{number}"),
            from: Some("1.0-1".to_owned()),
            to: Some("1.0-2".to_owned()),
            at_ms: 1_785_231_000_000,
        };
        let found = MachineChangesFound {
            packages: vec![MachinePackages {
                container: None,
                changes: (0..500).map(change).collect(),
            }],
            files: Some(ChangedFiles {
                files: (0..50)
                    .map(|number| ChangedFile {
                        path: format!("/etc/a\u{1b}/file-{number}"),
                        at_ms: 1_785_231_000_000,
                    })
                    .collect(),
                total: 700,
                complete: true,
            }),
            unread: Vec::new(),
        };
        let packages = package_lines(&found).join("\n");
        assert!(packages.starts_with("packages of host, 500 changed: package-0 1.0-1 -> 1.0-2, "));
        assert!(
            packages.len() < PACKAGES_BYTES + 120 && packages.contains(" more (update_history)")
        );
        let files = file_lines(&found).join("\n");
        assert!(
            files.starts_with("files of /etc, 700 changed: ") && files.contains("650 older ones")
        );
        assert!(
            files.len() < FILES_BYTES + 160 && !files.contains('\u{1b}'),
            "{files}"
        );
        let call = |number: usize| ChangingCalls {
            agent: format!("agent{}", number % 40),
            tool: "container_restart".to_owned(),
            target: Some(format!("web{number}")),
            count: 3,
            last_ms: 0,
        };
        let calls = call_lines(&(0..400).map(call).collect::<Vec<_>>()).join("\n");
        assert!(calls.len() < CALLS_BYTES * 2 + 60, "{}", calls.len());
        assert!(calls.contains("container_restart web0 x3"), "{calls}");
    }

    #[test]
    fn logins_are_counted_with_their_sources() {
        let one = |user: &str, from: &str, success| PlacedLogin {
            container: None,
            event: LoginEvent::new(0, LoginKind::Ssh, user, success).from(from),
        };
        let mut found = LoginsFound::default();
        assert_eq!(login_lines(&found), [""; 0]);
        found.events = vec![
            one("ada", "192.0.2.1", true),
            one("ada", "192.0.2.2", true),
            one("root", "192.0.2.9", false),
        ];
        assert_eq!(
            login_lines(&found),
            [
                "logins: 2 (2 ssh) by 1 users from 192.0.2.1, 192.0.2.2; 1 failed from 1 addresses; login_list lists them"
            ]
        );
    }
}

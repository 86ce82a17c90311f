//! Parses apt's history (`/var/log/apt/history.log`).

use schemars::JsonSchema;
use serde::Serialize;

use gatewren_base::sys::{LocalZone, rfc3339};

use super::update_applied::{ChangedPackage, sentence, word};

/// The oldest file of apt's history that is read; the files rotate monthly.
pub const OLDEST_FILE: u8 = 24;

/// The maximum number of packages of one run in a result; the rest is only counted.
const MAX_LISTED: usize = 40;

/// A page of apt's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdateHistory {
    /// The runs of apt that changed something, newest first.
    pub runs: Vec<UpdateRun>,
    /// Whether there are older runs.
    pub truncated: bool,
    /// The offset of the older runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

/// One run of apt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdateRun {
    /// When it began, RFC 3339.
    pub began_at: String,
    /// When it ended; absent if the run was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The user who requested it, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// The agent that requested it through this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The changed packages.
    pub changes: Vec<RunChange>,
    /// The total number of changed packages.
    pub total: usize,
    /// The error, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The change of one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunChange {
    /// `install`, `reinstall`, `upgrade`, `downgrade`, `remove` or `purge`.
    pub action: &'static str,
    #[serde(flatten)]
    pub package: ChangedPackage,
}

/// The keys of the package lists, with their actions.
const ACTIONS: [(&str, &str); 6] = [
    ("Install", "install"),
    ("Reinstall", "reinstall"),
    ("Upgrade", "upgrade"),
    ("Downgrade", "downgrade"),
    ("Remove", "remove"),
    ("Purge", "purge"),
];

impl UpdateHistory {
    /// Returns up to `limit` runs after the first `offset`.
    pub fn page(runs: Vec<UpdateRun>, offset: usize, limit: usize) -> Self {
        let next = offset.saturating_add(limit);
        let truncated = runs.len() > next;
        Self {
            runs: runs.into_iter().skip(offset).take(limit).collect(),
            truncated,
            next_offset: truncated.then_some(next),
        }
    }
}

/// Parses the runs of one file, newest first. A run whose beginning is cut off is left out. apt writes local times.
pub fn update_runs(text: &str, zone: &LocalZone) -> Vec<UpdateRun> {
    let runs = text.split("\n\n").filter_map(|text| run(text, zone));
    let mut runs: Vec<UpdateRun> = runs.collect();
    runs.reverse();
    runs
}

fn run(text: &str, zone: &LocalZone) -> Option<UpdateRun> {
    let mut run = UpdateRun::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(": ") else {
            continue;
        };
        match key {
            "Start-Date" => run.began_at = moment(value, zone).unwrap_or_default(),
            "End-Date" => run.ended_at = moment(value, zone),
            "Commandline" => {
                run.agent = agent(value);
                run.command = Some(sentence(value));
            }
            "Requested-By" => run.requested_by = Some(word(value)),
            "Error" => run.error = Some(sentence(value)),
            _ => {
                let action = ACTIONS.iter().find(|(name, _)| *name == key);
                if let Some((_, action)) = action {
                    run.changes.extend(packages(action, value));
                }
            }
        }
    }
    run.total = run.changes.len();
    run.changes.truncate(MAX_LISTED);
    (!run.began_at.is_empty()).then_some(run)
}

/// Converts `2026-07-28  09:30:00`, in the zone of the host or container.
fn moment(text: &str, zone: &LocalZone) -> Option<String> {
    zone.ms(text).map(rfc3339)
}

/// Returns the agent in the options that the helper passes to apt.
fn agent(command: &str) -> Option<String> {
    let named = command
        .split(' ')
        .find_map(|word| word.strip_prefix("--option=Gatewren::Agent="));
    named.filter(|name| !name.is_empty()).map(word)
}

/// Parses `libc6:amd64 (2.36-9, 2.36-10), new:all (1, automatic)`.
fn packages(action: &'static str, text: &str) -> Vec<RunChange> {
    let entries = text.split("), ").filter_map(|entry| {
        let (name, versions) = entry.split_once(" (")?;
        let (name, architecture) = name.split_once(':').unwrap_or((name, ""));
        let mut versions = versions.trim_end_matches(')').split(", ");
        let (first, second) = (versions.next().map(word), versions.next());
        let second = second.filter(|second| *second != "automatic").map(word);
        let (from, to) = match action {
            "install" | "reinstall" => (None, first),
            "remove" | "purge" => (first, None),
            _ => (first, second),
        };
        let package = ChangedPackage {
            name: word(name),
            architecture: word(architecture),
            from,
            to,
        };
        Some(RunChange { action, package })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // In the format of apt 2.6 (history.log).
    const LOG: &str = "
Start-Date: 2026-07-27  06:10:02
Commandline: /usr/bin/unattended-upgrade
Upgrade: libc6:amd64 (2.36-9, 2.36-9+deb12u4), tzdata:all (2023c-5, 2024a-0)
Error: Sub-process /usr/bin/dpkg returned an error code (1)
End-Date: 2026-07-27  06:10:40

Start-Date: 2026-07-28  09:30:00
Commandline: apt-get --option=Gatewren::Agent=agent:ada install
Requested-By: joe (1000)
Install: new:amd64 (1:2.0), dep:all (1, automatic)
Remove: old:amd64 (3)
";

    #[test]
    fn the_record_is_read_the_newest_first() {
        let runs = update_runs(LOG, &LocalZone::utc());
        assert_eq!(runs[0].began_at, "2026-07-28T09:30:00.000Z");
        assert_eq!(runs[0].ended_at, None);
        assert_eq!(runs[0].requested_by.as_deref(), Some("joe (1000)"));
        assert_eq!(runs[0].agent.as_deref(), Some("agent:ada"));
        let changes: Vec<_> = runs[0]
            .changes
            .iter()
            .map(|c| {
                (
                    c.action,
                    c.package.name.as_str(),
                    c.package.from.as_deref(),
                    c.package.to.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            changes,
            [
                ("install", "new", None, Some("1:2.0")),
                ("install", "dep", None, Some("1")),
                ("remove", "old", Some("3"), None)
            ]
        );
        assert_eq!((runs[1].total, runs[1].changes[0].action), (2, "upgrade"));
        assert!(runs[1].error.is_some() && runs[1].agent.is_none());
        assert_eq!(
            update_runs(
                "cut (1, 2)\nEnd-Date: 2026-07-27  06:10:40\n",
                &LocalZone::utc()
            ),
            []
        );
    }

    #[test]
    fn a_page_says_where_the_next_begins() {
        let page = UpdateHistory::page(update_runs(LOG, &LocalZone::utc()), 0, 1);
        assert_eq!(
            (page.runs.len(), page.truncated, page.next_offset),
            (1, true, Some(1))
        );
        let last = UpdateHistory::page(update_runs(LOG, &LocalZone::utc()), 1, 1);
        assert_eq!(
            (last.runs.len(), last.truncated, last.next_offset),
            (1, false, None)
        );
        assert_eq!(
            UpdateHistory::page(update_runs(LOG, &LocalZone::utc()), 9, 1).runs,
            []
        );
    }
}

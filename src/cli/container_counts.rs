//! Counts the containers of each runtime in the state, for `gatewren status`.

use std::path::Path;

use serde_json::{Map, Value, json};

use gatewren_base::config::RuntimeKind;
use gatewren_gate::owner_actions::sanitize;
use gatewren_host::backends::ContainerRef;
use gatewren_store::state::History;

/// The most containers of a runtime that a line names; the others are counted.
const MAX_NAMED: usize = 5;

/// The containers of one runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerCount {
    runtime: RuntimeKind,
    total: usize,
    running: usize,
    unhealthy: Vec<String>,
    /// Whether the runtime does not answer, so that the other values are old.
    is_stale: bool,
}

/// Reads the counts of the runtimes that have containers.
pub fn count_containers(state: &Path) -> Result<Vec<ContainerCount>, String> {
    let history = History::open(state).map_err(|e| e.to_string())?;
    let document = history.document().map_err(|e| e.to_string())?;
    let containers = document.root.pointer("/public/packageData");
    Ok(count(containers.and_then(Value::as_object)))
}

fn count(containers: Option<&Map<String, Value>>) -> Vec<ContainerCount> {
    let mut counts: Vec<ContainerCount> = Vec::new();
    for runtime in RuntimeKind::ALL {
        let mut found = ContainerCount {
            runtime,
            total: 0,
            running: 0,
            unhealthy: Vec::new(),
            is_stale: false,
        };
        for (id, container) in containers.into_iter().flatten() {
            let reference = id.parse::<ContainerRef>();
            if reference.is_ok_and(|reference| reference.runtime() == runtime) {
                found.add(id, container);
            }
        }
        if found.total > 0 {
            counts.push(found);
        }
    }
    counts
}

impl ContainerCount {
    fn add(&mut self, id: &str, container: &Value) {
        let has = |pointer: &str, word: &str| {
            container.pointer(pointer).and_then(Value::as_str) == Some(word)
        };
        self.total += 1;
        self.running += usize::from(has("/status", "running"));
        if has("/engine/health/status", "unhealthy") {
            self.unhealthy.push(id.to_owned());
        }
        let is_stale = container.get("stale").and_then(Value::as_bool);
        self.is_stale |= is_stale == Some(true);
    }

    /// The counts as a line.
    pub fn line(&self) -> String {
        let word = self.runtime.word();
        let mut line = format!(
            "  {word:<13} {} of {} containers run",
            self.running, self.total
        );
        if self.is_stale {
            let title = self.runtime.title();
            line = format!("{line}, as of when {title} last answered");
        }
        if self.unhealthy.is_empty() {
            return line;
        }
        let named: Vec<String> = self
            .unhealthy
            .iter()
            .take(MAX_NAMED)
            .map(|id| sanitize(id))
            .collect();
        let more = match self.unhealthy.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{line}; unhealthy: {}{more}", named.join(", "))
    }

    /// The counts as a member of a JSON object.
    pub fn member(&self) -> (String, Value) {
        let fields = json!({
            "total": self.total, "running": self.running, "unhealthy": self.unhealthy, "stale": self.is_stale,
        });
        (self.runtime.word().to_owned(), fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runtime_with_containers_has_its_counts() {
        let containers = json!({
            "alpha": { "status": "stopped" },
            "docker:web": { "status": "running", "engine": { "health": { "status": "unhealthy" } } },
            "docker:db": { "status": "running", "stale": true },
            "no/name": { "status": "running" },
        });
        let counts = count(containers.as_object());
        let lines: Vec<String> = counts.iter().map(ContainerCount::line).collect();
        let expected = [
            "  lxc           0 of 1 containers run",
            "  docker        2 of 2 containers run, as of when Docker last answered; unhealthy: docker:web",
        ];
        assert_eq!(lines, expected);
        assert_eq!(counts[1].member().1["unhealthy"], json!(["docker:web"]));
        assert_eq!(count(None), []);
    }
}

//! The current problems of the server, in words: unhealthy containers, a full disk, and recent errors.

use serde_json::{Map, Value};

use super::container_parts::container_path;
use super::{home_texts, texts};
use gatewren_base::sys::now_ms;

/// An error is a problem for a day, unless it was seen before.
const RECENT_MS: u64 = 24 * 3_600_000;

/// A file system with this usage in percent is a problem.
const FULL: f64 = 95.0;

/// The sections of the manual about a full disk, a container and an alert.
pub const SECTION_DISK: &str = "gatewren.8.html#TROUBLESHOOTING";
pub const SECTION_CONTAINER: &str = "gatewren-guide.7.html#DOCKER_AND_PODMAN";
pub const SECTION_ALERT: &str = "gatewren.8.html#NOTIFICATIONS";

/// A problem and what the owner can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProblem {
    /// What is wrong.
    pub words: String,
    /// What to do.
    pub remedy: Remedy,
    /// The section of the manual about it.
    pub section: &'static str,
}

/// What to do about a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Only words.
    Words(String),
    /// A page of the owner.
    Page {
        /// Its path.
        path: String,
        /// What to do there.
        words: &'static str,
    },
}

/// Returns each problem of a state document and of the usage of the fullest disk in percent.
pub fn problems(document: &Value, disk: Option<f64>) -> Vec<ServerProblem> {
    let public = |member: &str| document.get("public")?.get(member)?.as_object();
    let mut problems: Vec<ServerProblem> = disk
        .filter(|usage| *usage >= FULL)
        .map(|usage| ServerProblem {
            words: format!("{} {usage:.0} %.", texts::DISK_IS_FULL),
            remedy: Remedy::Words(home_texts::REMEDY_DISK.to_owned()),
            section: SECTION_DISK,
        })
        .into_iter()
        .collect();
    for (id, container) in public("packageData").into_iter().flatten() {
        let health = container.pointer("/engine/health/status");
        if health.and_then(Value::as_str) == Some("unhealthy") {
            problems.push(ServerProblem {
                words: format!("{id} {}.", texts::IS_UNHEALTHY),
                remedy: Remedy::Page {
                    path: container_path(id),
                    words: home_texts::REMEDY_UNHEALTHY,
                },
                section: SECTION_CONTAINER,
            });
        }
    }
    if let Some(groups) = public("notifications") {
        problems.extend(recent_errors(groups, now_ms()));
    }
    problems
}

/// The unseen errors of the last day, those of the host and those of each container.
fn recent_errors(groups: &Map<String, Value>, now: u64) -> Vec<ServerProblem> {
    let host = groups.get("host").into_iter();
    let containers = groups.get("containers").and_then(Value::as_object);
    let groups = host.chain(containers.into_iter().flat_map(Map::values));
    let all = groups.filter_map(Value::as_object).flat_map(Map::values);
    let is_recent = |one: &&Value| {
        let at = one.get("at_ms").and_then(Value::as_u64).unwrap_or(0);
        one.get("level").and_then(Value::as_str) == Some("error")
            && one.get("seen") != Some(&Value::Bool(true))
            && at.saturating_add(RECENT_MS) > now
    };
    all.filter(is_recent)
        .filter_map(|one| {
            let text = |member: &str| one.get(member)?.as_str();
            Some(ServerProblem {
                words: format!("{}.", text("title")?),
                remedy: Remedy::Words(text("message").unwrap_or_default().to_owned()),
                section: SECTION_ALERT,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(problems: &[ServerProblem]) -> Vec<&str> {
        problems.iter().map(|one| one.words.as_str()).collect()
    }

    #[test]
    fn a_full_disk_and_an_unhealthy_container_are_problems() {
        let container = |status: &str| json!({ "engine": { "health": { "status": status } } });
        let containers = json!({ "docker:a": container("unhealthy"), "docker:b": container("healthy"), "c": {} });
        let document = json!({ "public": { "packageData": containers } });
        let found = problems(&document, Some(50.0));
        assert_eq!(words(&found), ["docker:a is unhealthy."]);
        assert!(matches!(&found[0].remedy, Remedy::Page { .. }), "{found:?}");
        assert_eq!(problems(&document, Some(96.0)).len(), 2);
        assert!(problems(&json!({}), None).is_empty());
    }

    #[test]
    fn only_unseen_errors_of_the_last_day_are_problems() {
        let now = 10 * RECENT_MS;
        let one = |at_ms: u64, level: &str, seen: bool, title: &str| json!({ "at_ms": at_ms, "level": level, "seen": seen, "title": title });
        let groups = json!({
            "host": {
                "1": one(now - RECENT_MS, "error", false, "old"),
                "2": one(now - 5, "error", true, "seen"),
                "3": one(now - 5, "warning", false, "warning"),
                "4": one(now - 5, "error", false, "disk"),
                "5": "text"
            },
            "containers": { "web": { "6": one(now - 5, "error", false, "backup") } }
        });
        let found = recent_errors(groups.as_object().unwrap(), now);
        assert_eq!(words(&found), ["disk.", "backup."]);
    }
}

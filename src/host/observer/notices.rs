//! Notifies the owner of a container that stopped without a call of an agent, of a unit that failed, and of a file
//! system that became full.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use gatewren_base::config::{Reach, is_host_unit};
use gatewren_store::state::{
    Author, Document, Notice, Notifications, Pointer, RevisionsSince, State, StateView, StateViews,
};

/// How long the same unit causes no second notification: one that fails again and again should not hide the others.
const UNIT_QUIET: Duration = Duration::from_hours(24);

/// The maximum number of failed units that are remembered for that; at the limit, all are forgotten.
const MAX_UNITS: usize = 512;

/// The maximum number of units with a notification of their own in one revision; those beyond share one.
const MAX_AT_ONCE: usize = 5;

/// Follows the state, and adds notifications.
#[derive(Debug)]
pub struct NotificationWatch {
    /// When the owner was last notified of each unit.
    failed_units: BTreeMap<String, Instant>,
    state: State,
    view: StateView,
    notifications: Notifications,
}

impl NotificationWatch {
    /// Creates a follower of this state.
    pub fn new(state: State) -> Self {
        Self {
            failed_units: BTreeMap::new(),
            view: StateViews::new(state.clone()).view_for("", &Reach::everything()),
            notifications: Notifications::new(state.clone()),
            state,
        }
    }

    /// Follows the state from now on.
    pub async fn run(mut self) {
        let mut revisions = self.state.watch_revision();
        let mut before = self.state.document();
        // `self.state` holds the other end, so it cannot close.
        while revisions.changed().await.is_ok() {
            let now = self.state.document();
            for name in stopped_containers(&before, &now) {
                self.add_stopped(&name, &before, &now).await;
            }
            for (path, level) in fuller_filesystems(&before, &now) {
                self.add(fullness_notice(&path, level)).await;
            }
            self.add_failed(failed_units(&before, &now)).await;
            before = now;
        }
    }

    async fn add_stopped(&self, name: &str, before: &Document, now: &Document) {
        if self.has_call_as_cause(name, before, now).await {
            return;
        }
        let notice = Notice {
            container: Some(name.to_owned()),
            level: "warning",
            title: format!("{name} has stopped"),
            message: "It was running and stopped without a call of an agent: it ended by itself, or a user of the \
                      box stopped it. container_logs may show the reason."
                .to_owned(),
            change: None,
        };
        self.add(notice).await;
    }

    /// Notifies the owner of units that failed, unless it was notified of the same ones lately.
    async fn add_failed(&mut self, mut units: Vec<String>) {
        let now = Instant::now();
        self.failed_units
            .retain(|_, at| now.saturating_duration_since(*at) < UNIT_QUIET);
        units.retain(|unit| !self.failed_units.contains_key(unit));
        if self.failed_units.len() + units.len() > MAX_UNITS {
            self.failed_units.clear();
        }
        for unit in &units {
            self.failed_units.insert(unit.clone(), now);
        }
        let more = units.len().saturating_sub(MAX_AT_ONCE);
        units.truncate(MAX_AT_ONCE);
        for unit in units {
            self.add(unit_notice(&format!("unit {unit} has failed")))
                .await;
        }
        if more > 0 {
            let title = format!("{more} more units have failed");
            self.add(unit_notice(&title)).await;
        }
    }

    async fn add(&self, notice: Notice) {
        if let Err(cause) = self.notifications.add(&Author::observer(), notice).await {
            tracing::warn!(%cause, "a notification could not be saved");
        }
    }

    /// Whether a call caused the change, according to the log.
    async fn has_call_as_cause(&self, name: &str, before: &Document, now: &Document) -> bool {
        let (view, place) = (self.view.clone(), place().child(name).child("status"));
        let between = (before.revision, now.revision);
        // Reads the log from the disk.
        let (after, upto) = between;
        let read = move || view.changes(after, upto, &place, 100);
        let found = tokio::task::spawn_blocking(read).await;
        match found {
            Ok(Ok(RevisionsSince::Revisions { revisions, .. })) => {
                revisions.last().is_some_and(|last| last.cause.is_some())
            }
            _ => false,
        }
    }
}

fn place() -> Pointer {
    Pointer::root().child("public").child("packageData")
}

/// The containers that were running before and are stopped now.
fn stopped_containers(before: &Document, now: &Document) -> Vec<String> {
    let (before, now) = (states(before), states(now));
    let ran = before.into_iter().filter(|(_, state)| *state == "running");
    ran.filter(|(name, _)| now.get(name) == Some(&"stopped"))
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn states(document: &Document) -> BTreeMap<&str, &str> {
    let all = place();
    let all = all.get(&document.root).and_then(Value::as_object);
    let all = all.into_iter().flatten();
    all.filter_map(|(name, facts)| Some((name.as_str(), facts.get("status")?.as_str()?)))
        .collect()
}

/// The units of the host that failed, without those of containers.
fn failed_units(before: &Document, now: &Document) -> Vec<String> {
    let (before, now) = (unit_states(before), unit_states(now));
    let failed = now.into_iter().filter(|(_, active)| *active == "failed");
    failed
        .filter(|(name, _)| before.get(name) != Some(&"failed") && is_host_unit(name))
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn unit_states(document: &Document) -> BTreeMap<&str, &str> {
    let all = Pointer::root().child("public").child("units");
    let all = all.get(&document.root).and_then(Value::as_object);
    let all = all.into_iter().flatten();
    all.filter_map(|(name, facts)| Some((name.as_str(), facts.get("active")?.as_str()?)))
        .collect()
}

fn unit_notice(title: &str) -> Notice {
    Notice {
        container: None,
        level: "warning",
        title: title.to_owned(),
        message:
            "systemd does not run it any more. unit_status shows its result, logs_query its log."
                .to_owned(),
        change: None,
    }
}

/// The levels of a file system in the state. A level falls only with a margin, so a file system that fluctuates
/// around a threshold is reported once.
const FULLNESS: [&str; 3] = ["normal", "high", "critical"];

/// The file systems with a higher level than before, by path, each with its level.
fn fuller_filesystems(before: &Document, now: &Document) -> Vec<(String, &'static str)> {
    let (before, now) = (fullness(before), fullness(now));
    let fuller = now
        .into_iter()
        .filter(|(path, level)| before.get(path).copied().unwrap_or(0) < *level);
    fuller
        .filter_map(|(path, level)| Some((path.to_owned(), *FULLNESS.get(level)?)))
        .collect()
}

fn fullness(document: &Document) -> BTreeMap<&str, usize> {
    let place = Pointer::root().child("public").child("serverInfo");
    let mounts = place.child("mounts");
    let mounts = mounts.get(&document.root).and_then(Value::as_object);
    let mounts = mounts.into_iter().flatten();
    let level = |facts: &Value| {
        let word = facts.get("fullness")?.as_str()?;
        FULLNESS.iter().position(|known| *known == word)
    };
    mounts
        .filter_map(|(path, facts)| Some((path.as_str(), level(facts)?)))
        .collect()
}

fn fullness_notice(path: &str, level: &str) -> Notice {
    let (level, percent) = match level {
        "critical" => ("error", 95),
        _ => ("warning", 90),
    };
    Notice {
        container: container_of(path),
        level,
        title: format!("{path} is {percent} % full"),
        message:
            "Programs that write there may soon fail. disk_usage finds the biggest directories."
                .to_owned(),
        change: None,
    }
}

/// A path with a component `lxc` belongs to the container in the next component. An agent without access to that
/// container is not notified of its disk.
fn container_of(path: &str) -> Option<String> {
    let mut parts = path.split('/').skip_while(|part| *part != "lxc");
    let name = parts.nth(1).filter(|part| !part.is_empty());
    name.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use gatewren_base::sys::Scratch;

    use super::*;

    #[tokio::test]
    async fn a_container_that_stops_without_a_call_is_told_of_once() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let notifications = Notifications::new(state.clone());
        let put = async |name: &str, status: &str, author: Author| {
            let at = place().child(name).child("status");
            let written = state.put(&author, &at, Some(json!(status))).await;
            written.unwrap();
        };
        let notices = NotificationWatch::new(state.clone());
        for name in ["crashed", "asked", "paused"] {
            put(name, "running", Author::observer()).await;
        }
        let mut following = Box::pin(notices.run());
        let changes = async {
            put("asked", "stopped", Author::observer().because("a1")).await;
            put("paused", "frozen", Author::observer()).await;
            put("crashed", "stopped", Author::observer()).await;
            let mut revisions = state.watch_revision();
            loop {
                let all = notifications.list("", &Reach::everything());
                if let [only] = all.as_slice() {
                    return only.clone();
                }
                assert!(all.is_empty(), "{all:?}");
                revisions.changed().await.unwrap();
            }
        };
        // Polled before anything changes: it follows from now on.
        tokio::select! {
            biased;
            () = &mut following => unreachable!(),
            notice = changes => {
                assert_eq!(notice.container.as_deref(), Some("crashed"));
                assert_eq!(notice.value["title"], "crashed has stopped");
            }
        }
    }

    #[tokio::test]
    async fn a_unit_that_fails_is_told_of_once_and_one_of_a_container_is_not() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let notifications = Notifications::new(state.clone());
        let units = Pointer::root().child("public").child("units");
        let put = async |name: &str, active: &str| {
            let value = json!({ "name": name, "active": active });
            let at = units.child(name);
            let written = state.put(&Author::observer(), &at, Some(value)).await;
            written.unwrap();
        };
        put("web.service", "active").await;
        let mut following = Box::pin(NotificationWatch::new(state.clone()).run());
        let changes = async {
            for (name, active) in [
                ("lxc@web.service", "failed"),
                ("docker-0123456789abcdef.scope", "failed"),
                ("web.service", "failed"),
                ("web.service", "active"),
                ("web.service", "failed"),
                ("last.service", "failed"),
            ] {
                put(name, active).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let mut revisions = state.watch_revision();
            while notifications.list("", &Reach::everything()).len() < 2 {
                revisions.changed().await.unwrap();
            }
            notifications.list("", &Reach::everything())
        };
        let notices = tokio::select! {
            biased;
            () = &mut following => unreachable!(),
            notices = changes => notices,
        };
        let titles: Vec<&str> = notices
            .iter()
            .map(|one| one.value["title"].as_str().unwrap())
            .collect();
        assert_eq!(
            titles,
            [
                "unit last.service has failed",
                "unit web.service has failed"
            ]
        );
    }

    #[tokio::test]
    async fn a_file_system_that_becomes_full_is_told_of_at_each_step_up() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let notifications = Notifications::new(state.clone());
        let place = Pointer::root()
            .child("public")
            .child("serverInfo")
            .child("mounts");
        let put = async |path: &str, level: &str| {
            let value = json!({ "fullness": level });
            let at = place.child(path);
            state
                .put(&Author::observer(), &at, Some(value))
                .await
                .unwrap();
        };
        put("/", "normal").await;
        let mut following = Box::pin(NotificationWatch::new(state.clone()).run());
        let changes = async {
            for (path, level, count) in [
                ("/", "high", 1),
                ("/srv", "normal", 1),
                ("/", "critical", 2),
                ("/", "high", 2),
                ("/var/lib/lxc/web/rootfs", "high", 3),
                ("/", "normal", 3),
                ("/", "high", 4),
            ] {
                put(path, level).await;
                let mut revisions = state.watch_revision();
                while notifications.list("", &Reach::everything()).len() < count {
                    revisions.changed().await.unwrap();
                }
                // Gives it time to add any other notifications.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let all = notifications.list("", &Reach::everything());
                assert_eq!(all.len(), count, "{path} {level}: {all:?}");
            }
            notifications.list("", &Reach::everything())
        };
        let notices = tokio::select! {
            biased;
            () = &mut following => unreachable!(),
            notices = changes => notices,
        };
        let levels: Vec<&str> = notices
            .iter()
            .map(|one| one.value["level"].as_str().unwrap())
            .collect();
        assert_eq!(levels, ["warning", "warning", "error", "warning"]);
        assert_eq!(notices[1].container.as_deref(), Some("web"));
        assert_eq!(notices[3].value["title"], "/ is 90 % full");
    }
}

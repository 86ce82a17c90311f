//! Keeps an engine's answers about its containers, so that a list of all of them asks only about those that may have
//! changed.
//!
//! An answer is used again only if the engine's list, read now, shows the container as it was beside the answer, if its
//! main process is the same, and if a stream of the engine's events has been open since without an event about it. A
//! list has no exact times, and events come late (Podman's after a quarter of a second): so a container that ended
//! less than a minute ago is always asked about. So is one whose health is checked: the number of failed checks
//! changes without an event.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gatewren_base::sys::{lock, process};

use super::api::EngineApi;
use super::container_id::EngineContainerId;
use super::error::EngineError;
use super::events::ChangedContainer;
use super::facts::EngineStatus;
use super::inspect::InspectedContainer;
use super::list::{ListedContainer, ListedState};

/// The most answers kept of one engine. Containers beyond them are asked about each time.
const MAX_KEPT: usize = 1024;

/// How long a stream of events must have been open before answers are kept: Docker confirms it before it listens.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// The kept answers of one engine. Clones share them.
///
/// Fast path: with `ContainerOverview`, a list of 100 containers of Podman takes 68 ms instead of 281 in a debug build, of
/// which Podman's own list is 38.
#[derive(Clone, Default)]
pub struct KeptAnswers {
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// When each stream of events that is open was opened.
    streams: BTreeMap<u64, Instant>,
    /// How many streams were opened so far.
    opened: u64,
    /// How many events and ends of streams there were.
    changes: u64,
    answers: BTreeMap<EngineContainerId, KeptAnswer>,
}

struct KeptAnswer {
    listed: ListedState,
    /// When the main process started, in clock ticks from boot; `None` if there was none.
    started: Option<u64>,
    answer: InspectedContainer,
}

/// The moment before a list was requested. Answers that are read after that list may be kept if nothing changed since.
#[derive(Debug, Clone, Copy)]
pub struct BeforeList {
    changes: u64,
}

/// An open stream of events. All answers are dropped when it ends: events after it are lost.
pub struct AnswerWatch {
    known: Arc<Mutex<Known>>,
    number: u64,
}

impl fmt::Debug for KeptAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptAnswers").finish_non_exhaustive()
    }
}

impl KeptAnswers {
    /// Notes that a stream of the engine's events was opened. Its reader reports each event at once.
    pub fn watch(&self) -> AnswerWatch {
        let mut known = lock(&self.known);
        known.opened += 1;
        let number = known.opened;
        known.streams.insert(number, Instant::now());
        AnswerWatch {
            known: Arc::clone(&self.known),
            number,
        }
    }

    /// Returns the moment before a list that is requested now; `None` if no events have been read for long enough.
    pub fn before_list(&self) -> Option<BeforeList> {
        let known = lock(&self.known);
        let changes = known.changes;
        let mut streams = known.streams.values();
        let is_watched = streams.any(|opened| opened.elapsed() >= SETTLE_TIME);
        is_watched.then_some(BeforeList { changes })
    }

    /// Returns what the engine answers about a container that it lists now: the kept answer if it is certain, or a new
    /// one, which is kept if it can be used again. `before` is the moment before the list.
    ///
    /// # Errors
    /// Fails if the engine does not answer, or has no container of this name any more.
    pub async fn ask(
        &self,
        api: &EngineApi,
        listed: &ListedContainer,
        before: Option<BeforeList>,
    ) -> Result<InspectedContainer, EngineError> {
        if let Some(answer) = self.find(listed) {
            return Ok(answer);
        }
        let answer = api.inspect(&listed.name).await?;
        if answer.name != listed.name {
            let name = &listed.name;
            return Err(EngineError::NotFound(format!(
                "there is no container '{name}'"
            )));
        }
        if let Some(before) = before {
            self.keep(before, listed, &answer);
        }
        Ok(answer)
    }

    fn find(&self, listed: &ListedContainer) -> Option<InspectedContainer> {
        let known = lock(&self.known);
        let kept = known.answers.get(&listed.id)?;
        let is_same = kept.listed == listed.state() && !listed.has_just_ended();
        let is_certain = is_same && kept.started == start_of(&kept.answer);
        is_certain.then(|| kept.answer.clone())
    }

    fn keep(&self, before: BeforeList, listed: &ListedContainer, answer: &InspectedContainer) {
        let state = &answer.state;
        let started = start_of(answer);
        let is_steady = match state.status {
            EngineStatus::Running | EngineStatus::Paused => {
                started.is_some() && state.health.is_none()
            }
            EngineStatus::Created | EngineStatus::Exited => state.pid.is_none(),
            EngineStatus::Restarting
            | EngineStatus::Removing
            | EngineStatus::Dead
            | EngineStatus::Unknown => false,
        };
        let is_of_row = answer.id == listed.id
            && answer.name == listed.name
            && state.status == listed.status
            && !listed.has_just_ended();
        let mut known = lock(&self.known);
        let has_room = known.answers.len() < MAX_KEPT || known.answers.contains_key(&listed.id);
        if is_steady && is_of_row && has_room && known.changes == before.changes {
            let kept = KeptAnswer {
                listed: listed.state(),
                started,
                answer: answer.clone(),
            };
            known.answers.insert(listed.id.clone(), kept);
        }
    }

    /// Drops the answers about containers that are not in a whole list.
    pub fn keep_only(&self, listed: &[&ListedContainer]) {
        let mut ids: Vec<&EngineContainerId> = listed.iter().map(|one| &one.id).collect();
        ids.sort_unstable();
        let mut known = lock(&self.known);
        let answers = &mut known.answers;
        answers.retain(|id, _| ids.binary_search(&id).is_ok());
    }

    /// Drops the answer about a container, or all of them if `id` is `None`.
    pub fn forget(&self, id: Option<&EngineContainerId>) {
        lock(&self.known).forget(id);
    }
}

impl Known {
    fn forget(&mut self, id: Option<&EngineContainerId>) {
        self.changes += 1;
        match id {
            Some(id) => _ = self.answers.remove(id),
            None => self.answers.clear(),
        }
    }
}

impl AnswerWatch {
    /// Notes an event.
    pub fn note(&self, changed: &ChangedContainer) {
        lock(&self.known).forget(changed.id.as_ref());
    }
}

impl Drop for AnswerWatch {
    fn drop(&mut self) {
        let mut known = lock(&self.known);
        known.streams.remove(&self.number);
        known.forget(None);
    }
}

/// Returns when the main process of a container started; `None` if there is none that lives.
fn start_of(answer: &InspectedContainer) -> Option<u64> {
    let pid = answer.state.pid.and_then(|pid| i32::try_from(pid).ok());
    // The first process of the host is never a container's.
    let main = process(pid.filter(|pid| *pid > 1)?)?;
    (!main.is_ending).then_some(main.started)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::engines::fake_engine::{FakeEngine, json};
    use crate::engines::inspect::HealthStatus;
    use crate::engines::kind::EngineKind;

    /// A container of the fake engine. Its main process is a real one.
    struct FakeContainer {
        id: String,
        name: &'static str,
        /// The state of the list, and its words with the time since then.
        listed: (&'static str, &'static str),
        exit_code: i64,
        health: Option<(&'static str, u32)>,
        main: Option<Child>,
    }

    impl FakeContainer {
        fn row(&self) -> String {
            let (id, name, (state, words)) = (&self.id, self.name, self.listed);
            format!(
                r#"{{"Id":"{id}","Names":["/{name}"],"Image":"a:1","State":"{state}","Status":"{words}"}}"#
            )
        }

        fn answer(&self) -> String {
            let (id, name, (state, _), code) = (&self.id, self.name, self.listed, self.exit_code);
            let pid = self.main.as_ref().map_or(0, Child::id);
            let (is_running, is_paused) = (pid != 0, state == "paused");
            let health = self.health.map_or("null".to_owned(), |(status, streak)| {
                format!(r#"{{"Status":"{status}","FailingStreak":{streak}}}"#)
            });
            format!(
                r#"{{"Id":"{id}","Name":"/{name}","Config":{{"Image":"a:1"}},"State":{{"Status":"{state}","Running":{is_running},"Paused":{is_paused},"Pid":{pid},"ExitCode":{code},"StartedAt":"2026-11-26T01:00:00Z","Health":{health}}}}}"#
            )
        }

        fn start(&mut self) {
            self.main = Some(Command::new("sleep").arg("100").spawn().unwrap());
            self.listed = ("running", "Up 2 hours");
        }

        fn stop(&mut self) {
            if let Some(mut main) = self.main.take() {
                main.kill().unwrap();
                main.wait().unwrap();
            }
            self.listed = ("exited", "Exited (137) Less than a second ago");
            self.exit_code = 137;
        }
    }

    impl Drop for FakeContainer {
        fn drop(&mut self) {
            self.stop();
        }
    }

    /// Two containers of an engine: `one` runs, and `two` ended long ago.
    struct Lab {
        containers: Arc<Mutex<Vec<FakeContainer>>>,
        engine: FakeEngine,
        api: EngineApi,
        kept: KeptAnswers,
    }

    impl Lab {
        fn start() -> Self {
            let container = |name, digit: &str| FakeContainer {
                id: digit.repeat(64),
                name,
                listed: ("exited", "Exited (3) 2 hours ago"),
                exit_code: 3,
                health: None,
                main: None,
            };
            let mut all = vec![container("one", "1"), container("two", "2")];
            all[0].start();
            let containers = Arc::new(Mutex::new(all));
            let of_engine = Arc::clone(&containers);
            let engine = FakeEngine::docker(move |request| {
                let all = lock(&of_engine);
                if request.line.contains("/containers/json") {
                    let rows: Vec<String> = all.iter().map(FakeContainer::row).collect();
                    return json("200 OK", &format!("[{}]", rows.join(",")));
                }
                let asked = all
                    .iter()
                    .find(|one| request.line.ends_with(&format!("/{}/json", one.name)));
                match asked {
                    Some(one) => json("200 OK", &one.answer()),
                    None => json("404 Not Found", r#"{"message":"no such container"}"#),
                }
            });
            Self {
                containers,
                api: engine.api(EngineKind::Docker),
                engine,
                kept: KeptAnswers::default(),
            }
        }

        /// Starts with a stream of events that is open for long enough, and both answers kept.
        async fn warm() -> (Self, AnswerWatch) {
            let lab = Self::start();
            let watch = lab.kept.watch();
            tokio::time::sleep(SETTLE_TIME).await;
            assert_eq!(lab.asked().await, ["one", "two"]);
            assert_eq!(lab.asked().await, [""; 0]);
            (lab, watch)
        }

        /// Changes a container behind the engine's events.
        fn change(&self, index: usize, change: impl FnOnce(&mut FakeContainer)) {
            change(&mut lock(&self.containers)[index]);
        }

        /// Returns the answers about all containers.
        async fn list(&self) -> Vec<InspectedContainer> {
            let before = self.kept.before_list();
            let listed = self.api.list().await.unwrap();
            self.kept.keep_only(&listed.iter().collect::<Vec<_>>());
            let mut all = Vec::new();
            for one in &listed {
                all.push(self.kept.ask(&self.api, one, before).await.unwrap());
            }
            all
        }

        /// Lists all containers, and returns the names of those that the engine was asked about for that.
        async fn asked(&self) -> Vec<String> {
            let earlier = self.engine.requests().len();
            self.list().await;
            let requests = self.engine.requests();
            let names = requests[earlier..].iter().filter_map(|line| {
                let (_, name) = line.strip_suffix("/json")?.split_once("/containers/")?;
                Some(name.to_owned())
            });
            names.collect()
        }
    }

    #[tokio::test]
    async fn a_second_list_asks_about_nothing_and_has_the_same_answers() {
        let (lab, _watch) = Lab::warm().await;
        let first = lab.list().await;
        let asked_before = lab.engine.requests().len();
        let second = lab.list().await;
        assert!(first == second && first.len() == 2);
        let listed = "GET /v1.41/containers/json?all=1";
        assert_eq!(lab.engine.requests()[asked_before..], [listed]);
    }

    #[tokio::test]
    async fn each_change_is_shown_by_the_next_list_though_no_event_has_come_yet() {
        let (lab, _watch) = Lab::warm().await;
        let pid_of = |all: &[InspectedContainer]| all[0].state.pid;
        let first = pid_of(&lab.list().await);

        // A restart leaves the row as it was.
        lab.change(0, |one| {
            one.stop();
            one.start();
        });
        let restarted = pid_of(&lab.list().await);
        assert!(restarted.is_some() && restarted != first);
        assert_eq!(lab.asked().await, [""; 0]);

        lab.change(0, |one| one.listed = ("paused", "Up 2 hours (Paused)"));
        assert_eq!(lab.list().await[0].state.status, EngineStatus::Paused);
        lab.change(0, |one| one.listed = ("running", "Up 2 hours"));
        assert_eq!(lab.list().await[0].state.status, EngineStatus::Running);

        lab.change(0, FakeContainer::stop);
        let stopped = lab.list().await.remove(0).state;
        assert_eq!((stopped.pid, stopped.exit_code), (None, Some(137)));
        lab.change(1, FakeContainer::start);
        let started = lab.list().await.remove(1).state;
        assert!(started.pid.is_some() && started.exit_code.is_none());

        lab.change(1, |two| two.name = "renamed");
        assert_eq!(lab.list().await[1].name, "renamed");
        drop(lock(&lab.containers).remove(0));
        let left = lab.list().await;
        assert!(left.len() == 1 && left[0].name == "renamed");
        assert_eq!(lock(&lab.kept.known).answers.len(), 1);
    }

    #[tokio::test]
    async fn a_container_that_ended_less_than_a_minute_ago_is_asked_about_each_time() {
        let (lab, _watch) = Lab::warm().await;
        // It ran again, and ended as before: only the time differs.
        lab.change(1, |two| two.listed.1 = "Exited (3) 59 seconds ago");
        for _ in 0..2 {
            assert_eq!(lab.asked().await, ["two"]);
        }
        lab.change(1, |two| two.listed.1 = "Exited (3) About a minute ago");
        assert_eq!(lab.asked().await, [""; 0], "it is as before");
        lab.change(1, |two| two.listed.1 = "Exited (4) About a minute ago");
        assert_eq!(lab.asked().await, ["two"]);
    }

    #[tokio::test]
    async fn a_container_with_a_health_check_is_asked_about_each_time() {
        let (lab, _watch) = Lab::warm().await;
        for (words, health) in [
            ("Up 2 hours (healthy)", ("healthy", 0)),
            // One check failed, which the row does not show.
            ("Up 2 hours (healthy)", ("healthy", 1)),
            ("Up 2 hours (unhealthy)", ("unhealthy", 3)),
        ] {
            lab.change(0, |one| {
                one.listed.1 = words;
                one.health = Some(health);
            });
            let shown = lab.list().await[0].state.health.unwrap();
            assert_eq!((shown.status.as_str(), shown.failing_streak), health);
            assert_eq!(
                shown.status == HealthStatus::Unhealthy,
                health.0 == "unhealthy"
            );
        }
    }

    #[tokio::test]
    async fn an_event_is_a_reason_to_ask_about_its_container() {
        let (lab, watch) = Lab::warm().await;
        let of = |id: &str| ChangedContainer {
            id: EngineContainerId::parse(id),
            name: None,
        };
        watch.note(&of(&"2".repeat(64)));
        assert_eq!(lab.asked().await, ["two"]);
        watch.note(&of("unknown"));
        assert_eq!(lab.asked().await, ["one", "two"]);
        lab.kept
            .forget(EngineContainerId::parse(&"1".repeat(64)).as_ref());
        assert_eq!(lab.asked().await, ["one"]);

        // An event during a list: the answer may be older than it.
        let before = lab.kept.before_list();
        let listed = lab.api.list().await.unwrap();
        watch.note(&of(&"2".repeat(64)));
        lab.kept.ask(&lab.api, &listed[1], before).await.unwrap();
        assert_eq!(lab.asked().await, ["two"]);
    }

    #[tokio::test]
    async fn nothing_is_kept_without_a_stream_of_events_that_was_open_all_the_time() {
        let (lab, watch) = Lab::warm().await;
        let other = lab.kept.watch();
        drop(watch);
        let all = ["one", "two"];
        for _ in 0..2 {
            assert_eq!(lab.asked().await, all, "the other one has just been opened");
        }
        tokio::time::sleep(SETTLE_TIME).await;
        assert_eq!(lab.asked().await, all);
        assert_eq!(lab.asked().await, [""; 0]);
        drop(other);
        for _ in 0..2 {
            assert_eq!(lab.asked().await, all);
        }
    }

    #[tokio::test]
    async fn no_more_answers_are_kept_than_the_bound() {
        let (lab, _watch) = Lab::warm().await;
        let before = lab.kept.before_list().unwrap();
        let listed = lab.api.list().await.unwrap().remove(1);
        let answer = lab.api.inspect("two").await.unwrap();
        for number in 0..=MAX_KEPT {
            let id = EngineContainerId::parse(&format!("{number:064x}")).unwrap();
            let listed = ListedContainer {
                id: id.clone(),
                ..listed.clone()
            };
            let answer = InspectedContainer {
                id,
                ..answer.clone()
            };
            lab.kept.keep(before, &listed, &answer);
        }
        assert_eq!(lock(&lab.kept.known).answers.len(), MAX_KEPT);
    }
}

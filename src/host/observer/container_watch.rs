//! Watches the containers: on events, on requests, and periodically.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::backends::{BackendError, ChangedContainers, ContainerEvents, Lxc, LxcView};
use gatewren_base::config::Reach;

use super::containers::{LookDepth, ObservedContainers};
use super::handle::LookRequests;
use super::writer::WatcherOutput;

/// The interval of glances without an event: addresses and ports change without one, and an event may be lost.
const GLANCE_EVERY: Duration = Duration::from_secs(30);

/// The interval at which LXC is queried about every container.
const LOOK_EVERY: Duration = Duration::from_mins(10);

/// The same interval while no events are available.
const LOOK_BLIND_EVERY: Duration = Duration::from_secs(10);

/// If events end sooner than this after they were opened, they are reopened only after this time.
const EVENTS_PAUSE: Duration = Duration::from_secs(30);

/// The minimum time between two looks because of events: a container in a crash loop is examined at most four times
/// a second.
const BREATH: Duration = Duration::from_millis(250);

/// When to look again after an event: addresses and other facts appear later than the state.
const AGAIN: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(8),
];

/// The watcher of `/public/packageData`.
#[derive(Debug)]
pub struct ContainerWatch {
    lxc: LxcView,
    containers: ObservedContainers,
    writer: WatcherOutput,
    requests: LookRequests,
    events: Option<Events>,
    agenda: Agenda,
}

#[derive(Debug)]
struct Events {
    stream: ContainerEvents,
    opened: Instant,
}

/// The due times of the watcher's actions.
#[derive(Debug)]
struct Agenda {
    glance: Instant,
    look: Instant,
    /// When events may be reopened, while there are none.
    events: Instant,
    again: Vec<Instant>,
    /// How to look at those times.
    again_how: LookDepth,
    /// Until when events must wait.
    events_from: Instant,
}

/// The event that woke the watcher.
enum WakeReason {
    Asked,
    Events(Result<ChangedContainers, BackendError>),
    Due,
}

impl ContainerWatch {
    /// Creates a watcher that has seen nothing yet.
    pub fn new(lxc: &Lxc, writer: WatcherOutput, requests: LookRequests) -> Self {
        let lxc = lxc.view_for(&Reach::everything(), "observer");
        Self {
            containers: ObservedContainers::new(lxc.clone()),
            events: None,
            agenda: Agenda::from_now(),
            lxc,
            writer,
            requests,
        }
    }

    /// Watches while it is polled.
    pub async fn run(mut self) {
        loop {
            let due = self.agenda.next(self.events.is_some());
            let reason = tokio::select! {
                () = self.requests.next() => WakeReason::Asked,
                news = next_events(&mut self.events, self.agenda.events_from) => WakeReason::Events(news),
                () = sleep_until(due) => WakeReason::Due,
            };
            match reason {
                WakeReason::Asked => {
                    self.look(LookDepth::States).await;
                    self.agenda.look_again(LookDepth::Glance);
                }
                WakeReason::Events(Ok(news)) => self.handle_events(news).await,
                WakeReason::Events(Err(cause)) => self.lose_events(cause),
                WakeReason::Due => self.run_due_actions().await,
            }
        }
    }

    /// Runs the actions that are due.
    async fn run_due_actions(&mut self) {
        let now = Instant::now();
        if self.events.is_none() && self.agenda.events <= now {
            self.open_events().await;
        }
        let again = self.agenda.take_again(now);
        if self.agenda.look <= now {
            self.look(LookDepth::States).await;
        } else if again {
            self.look(self.agenda.again_how).await;
        } else if self.agenda.glance <= now {
            self.look(LookDepth::Glance).await;
        }
    }

    async fn open_events(&mut self) {
        let opened = Instant::now();
        self.agenda.events = opened + EVENTS_PAUSE;
        match self.lxc.events().await {
            Ok(stream) => self.events = Some(Events { stream, opened }),
            Err(cause) => drop(self.writer.note("container events", Err::<(), _>(cause))),
        }
        // The monitor does not report what happened before it was ready.
        self.agenda.look_again(LookDepth::States);
    }

    fn lose_events(&mut self, cause: BackendError) {
        self.writer.note("container events", Err::<(), _>(cause));
        let now = Instant::now();
        let opened = self.events.take().map(|events| events.opened);
        self.agenda.events = opened.map_or(now, |opened| now.max(opened + EVENTS_PAUSE));
        self.agenda.look = now;
    }

    /// Looks at all containers, and answers the requests.
    async fn look(&mut self, how: LookDepth) {
        // A glance answers no request: it would miss that a container was started.
        let begun = (how == LookDepth::States).then(|| self.requests.begin());
        let looked = self.containers.look(how).await;
        self.writer.note("containers", looked);
        let now = Instant::now();
        self.agenda.glance = now + GLANCE_EVERY;
        if how == LookDepth::States {
            let blind = self.events.is_none() && self.containers.why_not().is_none();
            let pause = if blind { LOOK_BLIND_EVERY } else { LOOK_EVERY };
            self.agenda.look = now + pause;
        }
        self.write().await;
        if let Some(begun) = begun {
            self.requests.answer(begun);
        }
    }

    async fn handle_events(&mut self, news: ChangedContainers) {
        // Only now: a monitor that the helper rejects fails after it was opened.
        self.writer.note("container events", Ok::<_, String>(()));
        let heard = self.containers.apply_states(&news.states).await;
        self.writer.note("containers", heard);
        let looked = if news.all {
            self.containers.look(LookDepth::States).await
        } else {
            self.containers.look_at_defined(&news.defined).await
        };
        self.writer.note("containers", looked);
        self.write().await;
        self.agenda.look_again(LookDepth::Glance);
        self.agenda.events_from = Instant::now() + BREATH;
    }

    async fn write(&mut self) {
        let containers = self.containers.document();
        self.writer
            .write(&["public", "packageData"], containers)
            .await;
        self.writer
            .available("containers", self.containers.why_not())
            .await;
    }
}

impl Agenda {
    fn from_now() -> Self {
        let now = Instant::now();
        Self {
            glance: now,
            look: now,
            events: now,
            again: Vec::new(),
            again_how: LookDepth::Glance,
            events_from: now,
        }
    }

    /// Schedules more looks after an event.
    fn look_again(&mut self, how: LookDepth) {
        let now = Instant::now();
        // A pending look at states is not downgraded.
        if self.again.is_empty() || how == LookDepth::States {
            self.again_how = how;
        }
        self.again = AGAIN.map(|after| now + after).to_vec();
    }

    /// Whether one of those looks is due; a due look is removed.
    fn take_again(&mut self, now: Instant) -> bool {
        let before = self.again.len();
        self.again.retain(|at| *at > now);
        self.again.len() < before
    }

    fn next(&self, with_events: bool) -> Instant {
        let events = (!with_events).then_some(self.events);
        let others = self.again.iter().copied().chain(events);
        others.fold(self.look.min(self.glance), Instant::min)
    }
}

async fn next_events(
    events: &mut Option<Events>,
    not_before: Instant,
) -> Result<ChangedContainers, BackendError> {
    match events {
        Some(events) => {
            sleep_until(not_before).await;
            events.stream.next().await
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::time::sleep;

    use crate::backends::ContainerLab;
    use gatewren_store::state::Pointer;

    use super::super::watched::RunningObserver;
    use super::*;

    #[tokio::test]
    async fn a_box_without_lxc_says_so_and_what_to_do() {
        let Some(lab) = ContainerLab::find() else {
            return;
        };
        let (child, helper) = lab.helper_without_lxc();
        let watched = RunningObserver::by(&Lxc::new(helper), lab.scratch.path());
        watched.look().await;
        assert_eq!(watched.at("/public/packageData"), Some(json!({})));
        assert_eq!(
            watched.at("/public/observer/containers/available"),
            Some(json!(false))
        );
        let why = watched
            .at("/public/observer/containers/why")
            .unwrap()
            .to_string();
        assert!(why.contains("apt install lxc"), "{why}");
        watched.end().await;
        child.stop().await;
    }

    #[tokio::test]
    async fn real_containers_are_seen_to_change() {
        let Some(lab) = ContainerLab::find() else {
            return;
        };
        let (child, helper) = lab.helper();
        let watched = RunningObserver::by(&Lxc::new(helper), lab.scratch.path());
        watched.look().await;
        assert_eq!(
            watched.at("/public/observer/containers/available"),
            Some(json!(true))
        );

        let container = lab.create("observed", "lxc.start.auto = 1\n");
        let entry = "/public/packageData/observed";
        let status = "/public/packageData/observed/status";
        let appeared = watched.wait_for(status, Some("stopped")).await;
        assert_eq!(watched.at(&format!("{entry}/autostart")), Some(json!(true)));
        container.lxc("lxc-start", &[]);
        let started = watched.wait_for(status, Some("running")).await;
        // A look that timed out has only the state; the next one has the other facts.
        watched.look().await;
        assert!(watched.at(&format!("{entry}/init_pid")).is_some());
        container.lxc("lxc-freeze", &[]);
        let frozen = watched.wait_for(status, Some("frozen")).await;
        container.lxc("lxc-unfreeze", &[]);
        watched.wait_for(status, Some("running")).await;
        container.lxc("lxc-stop", &["-k"]);
        let stopped = watched.wait_for(status, Some("stopped")).await;
        watched.look().await;
        assert_eq!(watched.at(&format!("{entry}/init_pid")), None);

        container.destroy();
        let gone = watched.wait_for(entry, None).await;
        eprintln!(
            "appeared {appeared:?}, started {started:?}, frozen {frozen:?}, stopped {stopped:?}, \
             gone {gone:?} after the tool had returned"
        );
        for (what, took) in [("start", started), ("freeze", frozen), ("stop", stopped)] {
            assert!(took < GLANCE_EVERY, "{what} was seen after {took:?}");
        }
        watched.end().await;
        child.stop().await;
    }

    #[tokio::test]
    async fn an_idle_box_makes_no_revisions() {
        let Some(lab) = ContainerLab::find() else {
            return;
        };
        let (child, helper) = lab.helper();
        let container = lab.create("idle", "");
        container.lxc("lxc-start", &[]);
        let watched = RunningObserver::by(&Lxc::new(helper), lab.scratch.path());
        let entry = Pointer::parse("/public/packageData/idle").unwrap();
        let host = Pointer::parse("/public/serverInfo").unwrap();
        let mut quiet = watched.look().await;
        assert!(entry.get(&watched.state.document().root).is_some());
        // Facts of the container's start may appear late, and other tests run on the same host. Only changes that
        // never stop are an error.
        for attempt in 1.. {
            sleep(Duration::from_secs(3)).await;
            let again = watched.look().await;
            let newest_change =
                [&entry, &host].map(|place| watched.state.newest_change(place, quiet));
            if newest_change == [None, None] {
                break;
            }
            let what = watched.state.changes_since(quiet, &Pointer::root(), 10);
            assert!(attempt < 10, "up to revision {again}: {what:?}");
            quiet = again;
        }
        watched.end().await;
        child.stop().await;
    }

    fn define(lab: &ContainerLab, name: &str, text: &str) {
        std::fs::create_dir_all(lab.lxcpath.join(name)).unwrap();
        std::fs::write(lab.lxcpath.join(name).join("config"), text).unwrap();
    }

    fn count(found: Option<Value>) -> usize {
        found
            .and_then(|all| Some(all.as_object()?.len()))
            .unwrap_or(0)
    }

    #[tokio::test]
    async fn fifty_definitions_appear_change_and_go_at_once() {
        const ALL: &str = "/public/packageData";
        let Some(lab) = ContainerLab::find().map(ContainerLab::apart) else {
            return;
        };
        let (child, helper) = lab.helper();
        let watched = RunningObserver::by(&Lxc::new(helper), lab.scratch.path());
        watched.look().await;
        for number in 0..50 {
            define(&lab, &format!("c{number}"), "lxc.uts.name = x\n");
        }
        let appeared = watched.wait_until(ALL, |all| count(all) == 50).await;

        define(&lab, "c7", "lxc.uts.name = x\nlxc.start.auto = 1\n");
        let yes = |found| found == Some(json!(true));
        let changed = watched
            .wait_until(&format!("{ALL}/c7/autostart"), yes)
            .await;
        std::fs::rename(lab.lxcpath.join("c7"), lab.lxcpath.join("renamed")).unwrap();
        watched.wait_for(&format!("{ALL}/c7"), None).await;
        watched
            .wait_until(&format!("{ALL}/renamed/autostart"), yes)
            .await;
        // The directory is watched under its new name.
        define(&lab, "renamed", "lxc.uts.name = y\n");
        let hostname = format!("{ALL}/renamed/hostname");
        watched.wait_for(&hostname, Some("y")).await;

        // Half of them are deleted during a look.
        let look = watched.handle.nudge();
        for number in 20..50 {
            std::fs::remove_dir_all(lab.lxcpath.join(format!("c{number}"))).unwrap();
        }
        let gone = watched.wait_until(ALL, |all| count(all) == 20).await;
        watched.handle.wait_for_looks(look).await;
        watched.look().await;
        assert_eq!(count(watched.at(ALL)), 20);
        eprintln!("50 appeared {appeared:?}, one changed {changed:?}, 30 gone {gone:?}");
        watched.end().await;
        child.stop().await;
    }

    #[tokio::test]
    async fn a_monitor_that_dies_is_replaced() {
        let Some(lab) = ContainerLab::find().map(ContainerLab::apart) else {
            return;
        };
        let (child, helper) = lab.helper();
        let container = lab.create("survivor", "");
        let watched = RunningObserver::by(&Lxc::new(helper), lab.scratch.path());
        watched.look().await;
        let status = "/public/packageData/survivor/status";
        container.lxc("lxc-start", &[]);
        watched.wait_for(status, Some("running")).await;
        let mut killed = false;
        for _ in 0..200 {
            killed = lab.kill_monitor_daemon();
            if killed {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
        assert!(killed, "there was no monitor to kill");
        container.lxc("lxc-stop", &["-k"]);
        let stopped = watched.wait_for(status, Some("stopped")).await;
        container.lxc("lxc-start", &[]);
        let started = watched.wait_for(status, Some("running")).await;
        eprintln!("without a monitor: stopped {stopped:?}, started {started:?}");
        watched.end().await;
        child.stop().await;
    }

    #[tokio::test]
    async fn on_proxmox_its_files_are_the_definitions() {
        let Some(lab) = ContainerLab::find().map(ContainerLab::apart) else {
            return;
        };
        let proxmox = lab.scratch.join("pve");
        let conf = proxmox.join("101.conf");
        std::fs::create_dir(&proxmox).unwrap();
        let (child, helper) = lab.helper_with_proxmox(&proxmox);
        let watched = RunningObserver::by(&Lxc::new(helper), lab.scratch.path());
        watched.look().await;
        // A number known only to LXC is not a container of Proxmox.
        let container = lab.create("101", "");
        define(&lab, "plain", "");
        watched
            .wait_for("/public/packageData/plain/status", Some("stopped"))
            .await;
        let entry = "/public/packageData/101";
        assert_eq!(watched.at(entry), None);

        // As pmxcfs writes files.
        let text = "arch: amd64\nhostname: web\nmemory: 512\nonboot: 1\nunprivileged: 1\n";
        std::fs::write(proxmox.join("101.conf.tmp.1"), text).unwrap();
        std::fs::rename(proxmox.join("101.conf.tmp.1"), &conf).unwrap();
        let status = "/public/packageData/101/status";
        watched.wait_for(status, Some("stopped")).await;
        let facts = watched.at(entry).unwrap();
        assert_eq!(facts["hostname"], "web");
        assert_eq!(
            (&facts["autostart"], &facts["unprivileged"]),
            (&json!(true), &json!(true))
        );
        assert_eq!(facts["config"]["memory_limit_bytes"], 512 << 20);
        container.lxc("lxc-start", &[]);
        watched.wait_for(status, Some("running")).await;
        container.lxc("lxc-stop", &["-k"]);
        watched.wait_for(status, Some("stopped")).await;

        std::fs::write(proxmox.join("102.conf"), "hostname: never-started\n").unwrap();
        let status = "/public/packageData/102/status";
        watched.wait_for(status, Some("stopped")).await;
        std::fs::remove_file(&conf).unwrap();
        watched.wait_for(entry, None).await;
        watched.end().await;
        child.stop().await;
    }
}

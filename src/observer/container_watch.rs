//! Watches the containers: what makes it look at them, and how often it looks when nothing does.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::backends::{BackendError, ContainerEvents, ContainerName, ContainerState, Lxc};

use super::containers::{Containers, Look};
use super::handle::Requests;
use super::scribe::Scribe;

/// How often the containers are listed without a reason: an event may have been lost.
const LIST_EVERY: Duration = Duration::from_secs(5);

/// How often the containers are looked at one by one without a reason.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often containers are tried again on a box that has none, and events where they fail.
const RETRY_EVERY: Duration = Duration::from_secs(30);

/// When to look again after something happened: addresses and the like come later than the state.
const AGAIN: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(8),
];

/// The watcher of `/public/packageData`.
#[derive(Debug)]
pub struct ContainerWatch {
    lxc: Lxc,
    containers: Containers,
    scribe: Scribe,
    requests: Requests,
    agenda: Agenda,
}

/// What is due when.
#[derive(Debug)]
struct Agenda {
    list: Instant,
    look: Instant,
    events: Instant,
    again: Vec<Instant>,
}

/// How the containers that changed stand now.
type News = BTreeMap<ContainerName, ContainerState>;

/// What made the watcher look.
enum Occasion {
    Asked,
    Events(Result<News, BackendError>),
    Due,
}

impl ContainerWatch {
    /// One that has seen nothing yet.
    pub fn new(lxc: Lxc, scribe: Scribe, requests: Requests) -> Self {
        Self {
            containers: Containers::new(lxc.clone()),
            agenda: Agenda::from_now(),
            lxc,
            scribe,
            requests,
        }
    }

    /// Watches for as long as it is polled.
    pub async fn run(mut self) {
        let mut events: Option<ContainerEvents> = None;
        loop {
            let due = self.agenda.next(events.is_some());
            let occasion = tokio::select! {
                () = self.requests.next() => Occasion::Asked,
                news = next_news(&mut events) => Occasion::Events(news),
                () = sleep_until(due) => Occasion::Due,
            };
            match occasion {
                Occasion::Asked => {
                    self.look().await;
                    self.agenda.look_again();
                }
                Occasion::Events(Ok(news)) => {
                    // Only now: a monitor that is refused is refused after it was opened.
                    self.scribe.note("container events", Ok::<_, String>(()));
                    self.hear(&news).await;
                }
                Occasion::Events(Err(cause)) => {
                    events = None;
                    self.scribe.note("container events", Err::<(), _>(cause));
                    self.agenda.events = Instant::now() + RETRY_EVERY;
                }
                Occasion::Due => self.keep_up(&mut events).await,
            }
        }
    }

    /// Does what is due.
    async fn keep_up(&mut self, events: &mut Option<ContainerEvents>) {
        let now = Instant::now();
        if events.is_none() && self.agenda.events <= now {
            self.agenda.events = now + RETRY_EVERY;
            *events = match self.lxc.events().await {
                Ok(opened) => Some(opened),
                Err(cause) => self.scribe.note("container events", Err(cause)),
            };
            // What happened before the monitor was ready is not reported.
            self.agenda.look_again();
        }
        if self.agenda.look <= now {
            self.look().await;
        } else if self.agenda.again.iter().any(|at| *at <= now) {
            self.agenda.again.retain(|at| *at > now);
            self.look_at_containers(Look::States).await;
        } else if self.agenda.list <= now {
            // Without events nothing else would show that a container has stopped.
            let how = if events.is_some() {
                Look::Names
            } else {
                Look::States
            };
            self.look_at_containers(how).await;
        }
    }

    /// Looks at all of them, and tells those who asked for it.
    async fn look(&mut self) {
        let begun = self.requests.begin();
        self.look_at_containers(Look::States).await;
        self.agenda.look = Instant::now() + LOOK_EVERY;
        self.requests.answer(begun);
    }

    async fn hear(&mut self, news: &News) {
        for (name, state) in news {
            let looked = self.containers.hear(name, *state).await;
            self.scribe.note("containers", looked);
        }
        self.agenda.look_again();
        self.write_containers().await;
    }

    async fn look_at_containers(&mut self, how: Look) {
        let looked = self.containers.look(how).await;
        self.scribe.note("containers", looked);
        let pause = if self.containers.why_not().is_some() {
            RETRY_EVERY
        } else {
            LIST_EVERY
        };
        self.agenda.list = Instant::now() + pause;
        self.write_containers().await;
    }

    async fn write_containers(&mut self) {
        let containers = self.containers.document();
        self.scribe
            .write(&["public", "packageData"], containers)
            .await;
        self.scribe
            .available("containers", self.containers.why_not())
            .await;
    }
}

impl Agenda {
    fn from_now() -> Self {
        let now = Instant::now();
        Self {
            list: now,
            look: now,
            events: now,
            again: Vec::new(),
        }
    }

    /// Has the containers looked at some more times, because something happened.
    fn look_again(&mut self) {
        let now = Instant::now();
        self.again = AGAIN.map(|after| now + after).to_vec();
    }

    fn next(&self, with_events: bool) -> Instant {
        let events = (!with_events).then_some(self.events);
        let others = self.again.iter().copied().chain(events).chain([self.look]);
        others.fold(self.list, Instant::min)
    }
}

async fn next_news(events: &mut Option<ContainerEvents>) -> Result<News, BackendError> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::sleep;

    use crate::backends::Lab;
    use crate::state::Pointer;

    use super::super::watched::Watched;
    use super::*;

    #[tokio::test]
    async fn a_box_without_lxc_says_so_and_what_to_do() {
        let Some(lab) = Lab::find() else { return };
        let (child, helper) = lab.helper_without_lxc();
        let watched = Watched::by(Lxc::new(helper), lab.scratch.path());
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
        let Some(lab) = Lab::find() else { return };
        let (child, helper) = lab.helper();
        let watched = Watched::by(Lxc::new(helper), lab.scratch.path());
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
        assert!(watched.at(&format!("{entry}/init_pid")).is_some());
        container.lxc("lxc-freeze", &[]);
        let frozen = watched.wait_for(status, Some("frozen")).await;
        container.lxc("lxc-unfreeze", &[]);
        watched.wait_for(status, Some("running")).await;
        container.lxc("lxc-stop", &["-k"]);
        let stopped = watched.wait_for(status, Some("stopped")).await;
        watched.look().await;
        assert_eq!(watched.at(&format!("{entry}/init_pid")), None);

        let start = Instant::now();
        container.destroy();
        let revision = watched.look().await;
        assert_eq!(watched.at(entry), None, "revision {revision}");
        let gone = start.elapsed();
        eprintln!(
            "appeared {appeared:?}, started {started:?}, frozen {frozen:?}, stopped {stopped:?}, \
             gone and told {gone:?}"
        );
        for (what, took) in [("start", started), ("freeze", frozen), ("stop", stopped)] {
            assert!(
                took < Duration::from_secs(3),
                "{what} was seen after {took:?}"
            );
        }
        watched.end().await;
        child.stop().await;
    }

    #[tokio::test]
    async fn an_idle_box_makes_no_revisions() {
        let Some(lab) = Lab::find() else { return };
        let (child, helper) = lab.helper();
        let container = lab.create("idle", "");
        container.lxc("lxc-start", &[]);
        let watched = Watched::by(Lxc::new(helper), lab.scratch.path());
        let entry = Pointer::parse("/public/packageData/idle").unwrap();
        let quiet = watched.look().await;
        assert!(entry.get(&watched.state.document().root).is_some());
        sleep(Duration::from_secs(3)).await;
        let again = watched.look().await;
        // Other tests have their containers on the same box.
        assert_eq!(
            watched.state.touched(&entry, quiet),
            None,
            "up to revision {again}"
        );
        let host = Pointer::parse("/public/serverInfo").unwrap();
        assert_eq!(
            watched.state.touched(&host, quiet),
            None,
            "up to revision {again}"
        );
        watched.end().await;
        child.stop().await;
    }
}

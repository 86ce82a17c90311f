//! The observer's life: what makes it look, and how often it looks when nothing does.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::backends::{BackendError, ContainerEvents, ContainerName, ContainerState, Host, Lxc};
use crate::state::{Author, Pointer, State, StateError};

use super::complaints::Complaints;
use super::containers::{Containers, Look};
use super::facts;
use super::handle::{ObserverHandle, Requests, handle};

/// How often the containers are listed without a reason: an event may have been lost.
const LIST_EVERY: Duration = Duration::from_secs(5);

/// How often the box is looked at as a whole without a reason.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often containers are tried again on a box that has none, and events where they fail.
const RETRY_EVERY: Duration = Duration::from_secs(30);

/// When to look again after something happened: addresses and the like come later than the state.
const AGAIN: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(8),
];

/// Watches the box and writes what it sees into the state.
#[derive(Debug)]
pub struct Observer {
    state: State,
    lxc: Lxc,
    host: Host,
    containers: Containers,
    complaints: Complaints,
    handle: ObserverHandle,
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

/// What made the observer look.
enum Occasion {
    Stop,
    Asked,
    Events(Result<News, BackendError>),
    Due,
}

impl Observer {
    /// An observer that has seen nothing yet.
    pub fn new(state: State, lxc: Lxc, host: Host) -> Self {
        let (handle, requests) = handle(state.clone());
        Self {
            containers: Containers::new(lxc.clone()),
            complaints: Complaints::default(),
            agenda: Agenda::from_now(),
            state,
            lxc,
            host,
            handle,
            requests,
        }
    }

    /// A way to ask it to look.
    pub fn handle(&self) -> ObserverHandle {
        self.handle.clone()
    }

    /// Watches until `stop` is ready.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut events: Option<ContainerEvents> = None;
        loop {
            let due = self.agenda.next(events.is_some());
            let occasion = tokio::select! {
                () = &mut stop => Occasion::Stop,
                () = self.requests.next() => Occasion::Asked,
                news = next_news(&mut events) => Occasion::Events(news),
                () = sleep_until(due) => Occasion::Due,
            };
            match occasion {
                Occasion::Stop => return,
                Occasion::Asked => {
                    self.look().await;
                    self.agenda.look_again();
                }
                Occasion::Events(Ok(news)) => {
                    // Only now: a monitor that is refused is refused after it was opened.
                    self.complaints
                        .note("container events", Ok::<_, String>(()));
                    self.hear(&news).await;
                }
                Occasion::Events(Err(cause)) => {
                    events = None;
                    self.complaints
                        .note("container events", Err::<(), _>(cause));
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
                Err(cause) => self.complaints.note("container events", Err(cause)),
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

    /// Looks at everything, and tells those who asked for it.
    async fn look(&mut self) {
        let begun = self.requests.begin();
        self.look_at_containers(Look::States).await;
        self.look_at_host().await;
        self.agenda.look = Instant::now() + LOOK_EVERY;
        self.requests.answer(begun);
    }

    async fn hear(&mut self, news: &News) {
        for (name, state) in news {
            let looked = self.containers.hear(name, *state).await;
            self.complaints.note("containers", looked);
        }
        self.agenda.look_again();
        self.write_containers().await;
    }

    async fn look_at_containers(&mut self, how: Look) {
        let looked = self.containers.look(how).await;
        self.complaints.note("containers", looked);
        let pause = if self.containers.why_not().is_some() {
            RETRY_EVERY
        } else {
            LIST_EVERY
        };
        self.agenda.list = Instant::now() + pause;
        self.write_containers().await;
    }

    async fn look_at_host(&mut self) {
        let mut facts = facts::server(&self.host.info(), &Host::mounts());
        let availability = facts::availability(self.containers.why_not());
        facts.insert("containers".to_owned(), availability);
        self.write(&["public", "serverInfo"], Value::Object(facts))
            .await;
    }

    async fn write_containers(&mut self) {
        self.write(&["public", "packageData"], self.containers.document())
            .await;
        let availability = facts::availability(self.containers.why_not());
        self.write(&["public", "serverInfo", "containers"], availability)
            .await;
    }

    async fn write(&mut self, place: &[&str], value: Value) {
        let pointer = place
            .iter()
            .fold(Pointer::root(), |above, key| above.child(*key));
        let written: Result<u64, StateError> = self
            .state
            .put(&Author::observer(), &pointer, Some(value))
            .await;
        self.complaints.note("the state", written);
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
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;
    use tokio::time::{sleep, timeout};

    use crate::backends::Lab;
    use crate::helper_client::Helper;
    use crate::sys::Scratch;

    use super::*;

    const LONG: Duration = Duration::from_secs(15);

    /// An observer at work, and what it works with.
    struct Watched {
        state: State,
        handle: ObserverHandle,
        stop: oneshot::Sender<()>,
        done: JoinHandle<()>,
    }

    impl Watched {
        fn by(helper: Helper, scratch: &Scratch) -> Self {
            let state = State::open(&scratch.join("state.db")).unwrap();
            let observer = Observer::new(state.clone(), Lxc::new(helper), Host::new());
            let handle = observer.handle();
            let (stop, stopped) = oneshot::channel::<()>();
            let done = tokio::spawn(observer.run(async move {
                let _ = stopped.await;
            }));
            Self {
                state,
                handle,
                stop,
                done,
            }
        }

        fn at(&self, pointer: &str) -> Option<Value> {
            let pointer = Pointer::parse(pointer).unwrap();
            pointer.get(&self.state.document().root).cloned()
        }

        async fn wait_for(&self, pointer: &str, expected: Option<&str>) -> Duration {
            let start = Instant::now();
            let mut bell = self.state.bell();
            let expected = expected.map(Value::from);
            let seen = bell.wait_for(|_| self.at(pointer) == expected);
            timeout(LONG, seen).await.expect(pointer).unwrap();
            start.elapsed()
        }

        async fn end(self) {
            drop(self.stop);
            self.done.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_box_whose_helper_is_silent_still_has_its_host_facts() {
        let scratch = Scratch::new();
        let watched = Watched::by(Helper::connect_to(scratch.join("none.sock")), &scratch);
        let revision = watched.handle.seen(watched.handle.nudge()).await;
        assert!(revision > 0);
        assert!(
            watched
                .at("/public/serverInfo/kernel")
                .is_some_and(|kernel| kernel.is_string())
        );
        assert_eq!(watched.at("/public/packageData"), Some(json!({})));
        watched.end().await;
    }

    #[tokio::test]
    async fn a_box_without_lxc_says_so_and_what_to_do() {
        let Some(lab) = Lab::find() else { return };
        let (child, helper) = lab.helper_without_lxc();
        let watched = Watched::by(helper, &lab.scratch);
        watched.handle.seen(watched.handle.nudge()).await;
        assert_eq!(watched.at("/public/packageData"), Some(json!({})));
        assert_eq!(
            watched.at("/public/serverInfo/containers/available"),
            Some(json!(false))
        );
        let why = watched
            .at("/public/serverInfo/containers/why")
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
        let watched = Watched::by(helper, &lab.scratch);
        watched.handle.seen(watched.handle.nudge()).await;
        assert_eq!(
            watched.at("/public/serverInfo/containers/available"),
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
        watched.handle.seen(watched.handle.nudge()).await;
        assert_eq!(watched.at(&format!("{entry}/init_pid")), None);

        let start = Instant::now();
        container.destroy();
        let revision = watched.handle.seen(watched.handle.nudge()).await;
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
        let watched = Watched::by(helper, &lab.scratch);
        let entry = Pointer::parse("/public/packageData/idle").unwrap();
        let quiet = watched.handle.seen(watched.handle.nudge()).await;
        assert!(entry.get(&watched.state.document().root).is_some());
        sleep(Duration::from_secs(3)).await;
        let again = watched.handle.seen(watched.handle.nudge()).await;
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

//! Watches the host: reads its facts when kernel events suggest a change, and periodically.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until, timeout};

use crate::backends::{Host, HostEvents, HostFacts};

use super::handle::LookRequests;
use super::host_facts::HostDocument;
use super::pace::LookThrottle;
use super::writer::WatcherOutput;

/// The interval of looks without an event: some facts have no events.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The time after which a slow look is logged; it continues, and no second one begins next to it.
const LOOK_TIME: Duration = Duration::from_secs(10);

/// The watcher of `/public/serverInfo`.
#[derive(Debug)]
pub struct HostWatch {
    host: Arc<Host>,
    document: HostDocument,
    writer: WatcherOutput,
    requests: LookRequests,
    pace: LookThrottle,
    look: Option<RunningLook>,
}

/// A look on its own thread: a failing disk may block it forever.
#[derive(Debug)]
struct RunningLook {
    /// The requests that it answers.
    begun: u64,
    facts: JoinHandle<Result<HostFacts, JoinError>>,
}

impl HostWatch {
    /// Creates a watcher that has seen nothing yet.
    pub fn new(host: Host, writer: WatcherOutput, requests: LookRequests) -> Self {
        Self {
            host: Arc::new(host),
            document: HostDocument::default(),
            writer,
            requests,
            pace: LookThrottle::default(),
            look: None,
        }
    }

    /// Watches while it is polled.
    pub async fn run(mut self) {
        let mut events = HostEvents::listen();
        loop {
            self.look(&events).await;
            let slowly = Instant::now() + LOOK_EVERY;
            self.wait(&mut events, slowly).await;
        }
    }

    /// Waits for a reason to look: a request, an event, or the interval.
    async fn wait(&mut self, events: &mut HostEvents, slowly: Instant) {
        loop {
            // No events are read between an event and its look: a storm fills the kernel's buffer and stops.
            let due = self.pace.next_look();
            tokio::select! {
                () = self.requests.next() => return,
                () = sleep_until(due.unwrap_or(slowly).min(slowly)) => return,
                () = events.next(), if due.is_none() => self.pace.hint(),
            }
        }
    }

    async fn look(&mut self, events: &HostEvents) {
        let was_late = self.look.is_some();
        let look = self.look.get_or_insert_with(|| {
            // In this order: every later event leads to another look.
            events.forget();
            self.pace.begin_look();
            let host = self.host.clone();
            RunningLook {
                begun: self.requests.begin(),
                facts: tokio::spawn(async move {
                    host.learn().await;
                    spawn_blocking(move || host.facts()).await
                }),
            }
        });
        let begun = look.begun;
        let Ok(facts) = timeout(LOOK_TIME, &mut look.facts).await else {
            let late = "it answers slowly; one of its disks or file systems may hang";
            self.writer.note("the host", Err::<(), _>(late));
            return;
        };
        self.look = None;
        if was_late {
            // It does not cover requests and events since it began.
            self.pace.hint();
        }
        if let Some(facts) = self.writer.note("the host", facts.flatten()) {
            let document = self.document.of(&facts);
            self.writer.write(&["public", "serverInfo"], document).await;
            self.requests.answer(begun);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::process::Command;

    use serde_json::{Value, json};
    use tokio::time::sleep;

    use crate::backends::Lxc;
    use crate::helper_client::HelperClient;
    use gatewren_base::sys::Scratch;
    use gatewren_store::state::{Pointer, State};

    use super::super::handle::ObserverHandleBuilder;
    use super::super::kept_parts::KeptParts;
    use super::super::watched::RunningObserver;
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn a_box_whose_helper_is_silent_still_has_its_host_facts() {
        let scratch = Scratch::new();
        let lxc = Lxc::new(HelperClient::connect_to(scratch.join("none.sock")));
        let watched = RunningObserver::by(&lxc, scratch.path());
        assert!(watched.look().await > 0);
        assert!(
            watched
                .at("/public/serverInfo/kernel")
                .is_some_and(|kernel| kernel.is_string())
        );
        let none = serde_json::json!({});
        assert_eq!(watched.at("/public/packageData"), Some(none));
        watched.end().await;
    }

    #[tokio::test]
    async fn a_look_that_hangs_is_waited_for_and_then_made_again() {
        let scratch = Scratch::new();
        let (file, aside) = (scratch.join("etc/resolv.conf"), scratch.join("aside"));
        fs::create_dir_all(scratch.join("etc")).unwrap();
        // Opening the pipe for reading blocks until a writer opens it, as with a failing disk.
        let made = Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());

        let state = State::open(&scratch.join("state.db")).unwrap();
        let mut nudges = ObserverHandleBuilder::default();
        let host = Host::recorded(scratch.path());
        let watch = HostWatch::new(
            host,
            WatcherOutput::new(state.clone(), nudges.causes(), KeptParts::default()),
            nudges.requests(),
        );
        let handle = nudges.handle(state.clone());
        let watching = tokio::spawn(watch.run());
        let hanging = handle.wait_for_looks(handle.nudge());
        assert!(timeout(Duration::from_millis(50), hanging).await.is_err());

        fs::rename(&file, &aside).unwrap();
        fs::write(&file, "nameserver 192.0.2.53\n").unwrap();
        // Opening both ends does not block, and the reader gets end of file. Repeated, because the reader may open
        // it only now.
        let release = async {
            loop {
                drop(File::options().read(true).write(true).open(&aside).unwrap());
                sleep(Duration::from_millis(10)).await;
            }
        };
        let looked = handle.wait_for_looks(handle.nudge());
        tokio::select! {
            looked = timeout(LONG, looked) => looked.expect("a look"),
            () = release => {}
        }
        let servers = Pointer::parse("/public/serverInfo/network/dns/servers").unwrap();
        let seen: Option<Value> = servers.get(&state.document().root).cloned();
        assert_eq!(seen, Some(json!(["192.0.2.53"])));
        watching.abort();
    }
}

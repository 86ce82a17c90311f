//! A running observer, for the tests of its watchers.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::backends::{Host, Lxc, SystemBus, Systemd};
use gatewren_base::config::Settings;
use gatewren_store::state::{Pointer, State};

use super::handle::ObserverHandle;
use super::units::ObservedUnits;
use super::watchers::Observer;

const LONG: Duration = Duration::from_mins(3);

/// A running observer and its parts.
pub struct RunningObserver {
    /// The state that it writes.
    pub state: State,
    /// Its handle.
    pub handle: ObserverHandle,
    stop: oneshot::Sender<()>,
    done: JoinHandle<()>,
}

impl RunningObserver {
    /// Starts an observer of these containers, with its state in the file `state.db` in `directory`.
    pub fn by(lxc: &Lxc, directory: &Path) -> Self {
        let state = State::open(&directory.join("state.db")).unwrap();
        let units = ObservedUnits::new(&Systemd::new(SystemBus::new()), Settings::default().into());
        let observer = Observer::new(state.clone(), lxc, Host::unaided(), units);
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

    /// The current value at a pointer.
    pub fn at(&self, pointer: &str) -> Option<Value> {
        let pointer = Pointer::parse(pointer).unwrap();
        pointer.get(&self.state.document().root).cloned()
    }

    /// Requests a look at everything, waits for it, and returns the document's revision.
    pub async fn look(&self) -> u64 {
        let looked = self.handle.wait_for_looks(self.handle.nudge());
        timeout(LONG, looked).await.expect("a look");
        self.state.document().revision
    }

    /// Waits until the value is this string, or absent, and returns how long that took.
    pub async fn wait_for(&self, pointer: &str, expected: Option<&str>) -> Duration {
        let expected = expected.map(Value::from);
        self.wait_until(pointer, |found| found == expected).await
    }

    /// Waits until the value satisfies `good`, and returns how long that took.
    pub async fn wait_until(
        &self,
        pointer: &str,
        good: impl Fn(Option<Value>) -> bool,
    ) -> Duration {
        let start = Instant::now();
        let mut revisions = self.state.watch_revision();
        let seen = revisions.wait_for(|_| good(self.at(pointer)));
        timeout(LONG, seen).await.expect(pointer).unwrap();
        start.elapsed()
    }

    /// Stops the observer and waits for its end.
    pub async fn end(self) {
        drop(self.stop);
        self.done.await.unwrap();
    }
}

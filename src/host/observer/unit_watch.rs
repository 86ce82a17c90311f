//! Watches systemd's units: follows its D-Bus signals, and reconnects to the bus.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::backends::{BackendError, ChangedUnits, UnitEvents};

use super::handle::LookRequests;
use super::unit_facts;
use super::units::ObservedUnits;
use super::writer::WatcherOutput;

/// The interval of full looks at all units. Signals are not lost; this costs little.
const LOOK_EVERY: Duration = Duration::from_mins(10);

/// The first and the longest delay before a reconnect to the bus; it doubles each time.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// How long the units stay in the document while the bus is unavailable, for example during its restart.
const PATIENCE: Duration = Duration::from_secs(5);

/// The watcher of `/public/units`.
#[derive(Debug)]
pub struct UnitWatch {
    units: ObservedUnits,
    writer: WatcherOutput,
    requests: LookRequests,
    events: Option<UnitEvents>,
    /// When the next full look, or the next reconnect, is due.
    next: Instant,
    pause: Duration,
    outage: BusOutage,
}

/// The state of the bus connection.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BusOutage {
    No,
    Since(Instant),
    /// Unavailable long enough for the document to state it, with this reason.
    GivenUp(String),
}

/// The event that woke the watcher.
enum WakeReason {
    Asked,
    Events(Result<ChangedUnits, BackendError>),
    /// The settings that choose units may have changed.
    Chosen,
    Due,
}

impl UnitWatch {
    /// Creates a watcher that has seen nothing yet.
    pub fn new(units: ObservedUnits, writer: WatcherOutput, requests: LookRequests) -> Self {
        let now = Instant::now();
        Self {
            units,
            writer,
            requests,
            events: None,
            next: now,
            pause: RETRY.0,
            // A bus that was never available is not waited for.
            outage: BusOutage::Since(now.checked_sub(PATIENCE).unwrap_or(now)),
        }
    }

    /// Watches while it is polled.
    pub async fn run(mut self) {
        loop {
            let due = match self.units.next_look() {
                Some(due) if self.events.is_some() => due.min(self.next),
                _ => self.next,
            };
            let reason = tokio::select! {
                () = self.requests.next() => WakeReason::Asked,
                events = next_events(&mut self.events) => WakeReason::Events(events),
                () = self.units.wait_for_selection_change() => WakeReason::Chosen,
                () = sleep_until(due) => WakeReason::Due,
            };
            match reason {
                // The units are examined a moment later, together.
                WakeReason::Events(Ok(events)) => self.units.schedule_looks(events),
                WakeReason::Events(Err(cause)) => self.finish_look(Err(cause)).await,
                WakeReason::Due if self.next > Instant::now() => {
                    let seen = self.units.catch_up().await;
                    self.finish_look(seen).await;
                }
                WakeReason::Asked | WakeReason::Chosen | WakeReason::Due => {
                    let begun = self.requests.begin();
                    let seen = match reason {
                        WakeReason::Asked => self.look_again().await,
                        _ => self.look().await,
                    };
                    self.finish_look(seen).await;
                    self.requests.answer(begun);
                }
            }
        }
    }

    /// Writes the result of a look, or the effect of its failure.
    async fn finish_look(&mut self, seen: Result<(), BackendError>) {
        self.update_outage(seen);
        self.write().await;
    }

    /// Looks at the changes since the last look if the bus is available. A reconnect may take longer than a caller
    /// should wait.
    async fn look_again(&mut self) -> Result<(), BackendError> {
        match self.events {
            Some(_) => self.units.look_at_list().await,
            None => Ok(()),
        }
    }

    /// Looks at everything, and connects to the bus first if needed.
    async fn look(&mut self) -> Result<(), BackendError> {
        if self.events.is_none() {
            // Before the look: later changes are signalled.
            self.events = Some(self.units.events().await?);
        }
        self.units.look_at_all().await?;
        self.outage = BusOutage::No;
        self.pause = RETRY.0;
        self.next = Instant::now() + LOOK_EVERY;
        Ok(())
    }

    /// Evaluates a failure: schedules a reconnect, and after a while marks the units as unavailable in the
    /// document.
    fn update_outage(&mut self, seen: Result<(), BackendError>) {
        let Err(cause) = &seen else {
            if self.outage == BusOutage::No {
                self.writer.note("units", seen);
            }
            return;
        };
        let now = Instant::now();
        self.events = None;
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(RETRY.1);
        let since = match self.outage {
            BusOutage::No => now,
            BusOutage::Since(since) => since,
            BusOutage::GivenUp(_) => now.checked_sub(PATIENCE).unwrap_or(now),
        };
        self.outage = BusOutage::Since(since);
        if now.duration_since(since) >= PATIENCE {
            self.outage = BusOutage::GivenUp(cause.to_string());
            self.units.forget();
            self.writer.note("units", seen);
        }
    }

    async fn write(&mut self) {
        let why_not = match &self.outage {
            BusOutage::No => None,
            // The last known state stays until the bus counts as unavailable.
            BusOutage::Since(_) => return,
            BusOutage::GivenUp(why) => Some(why.as_str()),
        };
        let availability = unit_facts::availability(why_not, self.units.left_out());
        self.writer
            .write(&["public", "units"], self.units.document())
            .await;
        self.writer
            .write(&["public", "observer", "units"], availability)
            .await;
    }
}

async fn next_events(events: &mut Option<UnitEvents>) -> Result<ChangedUnits, BackendError> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::backends::{SystemBus, Systemd};
    use gatewren_base::config::Settings;
    use gatewren_base::sys::Scratch;
    use gatewren_store::state::State;

    use super::super::handle::ObserverHandleBuilder;
    use super::super::kept_parts::KeptParts;
    use super::*;

    /// With a real systemd: `tests/lab/box`.
    #[tokio::test]
    async fn a_box_without_a_bus_says_so_and_answers_at_once() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let bus = SystemBus::at(&format!("unix:path={}", scratch.join("no-bus").display()));
        let units = ObservedUnits::new(&Systemd::new(bus), Settings::default().into());
        let mut nudges = ObserverHandleBuilder::default();
        let watch = UnitWatch::new(
            units,
            WatcherOutput::new(state.clone(), nudges.causes(), KeptParts::default()),
            nudges.requests(),
        );
        let handle = nudges.handle(state.clone());
        let watching = tokio::spawn(watch.run());
        let mut revisions = state.watch_revision();
        let reached = revisions.wait_for(|_| {
            let root = &state.document().root;
            let at = |pointer| root.pointer(pointer).cloned();
            let why = at("/public/observer/units/why");
            at("/public/observer/units/available") == Some(Value::Bool(false))
                && why.is_some_and(|why| why.to_string().contains("apt install dbus"))
                && at("/public/units") == Some(json!({}))
        });
        reached.await.unwrap();
        // Without a bus no look is possible, so the request is answered at once.
        handle.wait_for_looks(handle.nudge()).await;
        watching.abort();
    }
}

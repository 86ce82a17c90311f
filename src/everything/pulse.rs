//! An action that is repeated every few seconds for each client that has switched it on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, interval};

/// The interval.
pub const EVERY: Duration = Duration::from_secs(5);

/// When it is switched off automatically.
pub const LASTS: Duration = Duration::from_mins(10);

/// The maximum number of clients that can have it on; more are rejected.
const MAX_CLIENTS: usize = 256;

/// The action for one client; the number counts the repetitions.
type Beat = dyn Fn(&str, usize) + Send + Sync;

/// The clients that have it on, and the action for each of them.
pub struct Pulse {
    beat: Box<Beat>,
    on: Mutex<On>,
}

#[derive(Default)]
struct On {
    /// When it ends, by client.
    clients: BTreeMap<String, Instant>,
    /// Whether a task is running.
    beating: bool,
}

/// The result of switching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switched {
    /// It is on now; the first repetition comes at once.
    On,
    /// It is off now.
    Off,
    /// Too many other clients have it on.
    Refused,
}

impl Pulse {
    /// Creates it, switched off for all clients.
    pub fn new(beat: impl Fn(&str, usize) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            beat: Box::new(beat),
            on: Mutex::default(),
        })
    }

    /// Switches it on for a client, or off if it was on.
    pub fn switch(self: &Arc<Self>, client: &str) -> Switched {
        let mut on = self.lock();
        if on.clients.remove(client).is_some() {
            return Switched::Off;
        }
        if on.clients.len() >= MAX_CLIENTS {
            return Switched::Refused;
        }
        on.clients.insert(client.to_owned(), Instant::now() + LASTS);
        if !on.beating {
            on.beating = true;
            tokio::spawn(beats(Arc::downgrade(self)));
        }
        Switched::On
    }

    /// Runs the action once for each client; returns whether any is left.
    fn beat(&self, count: usize) -> bool {
        let clients: Vec<String> = {
            let mut on = self.lock();
            let now = Instant::now();
            on.clients.retain(|_, until| *until > now);
            on.beating = !on.clients.is_empty();
            on.clients.keys().cloned().collect()
        };
        for client in &clients {
            (self.beat)(client, count);
        }
        !clients.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, On> {
        self.on.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn beats(pulse: std::sync::Weak<Pulse>) {
    let mut every = interval(EVERY);
    let mut count = 0;
    loop {
        every.tick().await;
        if !pulse.upgrade().is_some_and(|pulse| pulse.beat(count)) {
            return;
        }
        count += 1;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio::time::{advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_beats_for_those_who_have_it_on_and_ends_with_the_last() {
        let (sender, mut beats) = mpsc::unbounded_channel();
        let pulse = Pulse::new(move |client, count| {
            let _ = sender.send((client.to_owned(), count));
        });
        assert_eq!(pulse.switch("a"), Switched::On);
        assert_eq!(beats.recv().await, Some(("a".to_owned(), 0)));
        assert_eq!(pulse.switch("b"), Switched::On);
        assert_eq!(beats.recv().await, Some(("a".to_owned(), 1)));
        assert_eq!(beats.recv().await, Some(("b".to_owned(), 1)));
        assert_eq!(pulse.switch("a"), Switched::Off);
        assert_eq!(beats.recv().await, Some(("b".to_owned(), 2)));
        advance(LASTS).await;
        let mut last = 2;
        while let Ok(Some((client, count))) = timeout(LASTS, beats.recv()).await {
            assert_eq!((client.as_str(), count), ("b", last + 1));
            last = count;
        }
        assert!(!pulse.lock().beating);
        assert_eq!(pulse.switch("b"), Switched::On);
        assert_eq!(beats.recv().await, Some(("b".to_owned(), 0)));
    }
}

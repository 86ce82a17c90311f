//! Which operations the helper allows on this host; requested at start and kept up to date.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::helper_client::{Frame, HelperClient, HelperError, Operation, OperationLimits, Stream};
use gatewren_base::config::HelperClass;

/// The pause before the helper is asked again; it doubles while the helper does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause. systemd starts a helper for each request, even one that cannot start.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long the start waits for the first answer. After that it continues as if every class were
/// on; the helper still refuses.
const FIRST_ANSWER: Duration = Duration::from_secs(3);

/// The helper sends no longer line; the connection is dropped at one.
const MAX_LINE: usize = 4096;

/// Which classes of the helper's operations are on; a clone is cheap.
///
/// This enforces nothing: it only tells which tools need not be offered. The helper itself enforces
/// the limits.
#[derive(Debug, Clone)]
pub struct HelperCapabilities(watch::Sender<KnownCapabilities>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct KnownCapabilities {
    /// Whether the helper was asked, whether or not it answered.
    has_answered: bool,
    /// The classes that its last answer does not have, in the order of the file; none before the first one.
    off: Vec<HelperClass>,
}

impl HelperCapabilities {
    /// Returns the initial state: nothing is known, and every class counts as on.
    pub fn unknown() -> Self {
        Self(watch::Sender::default())
    }

    /// Whether a class is on, as far as is known.
    pub fn allows(&self, class: HelperClass) -> bool {
        !self.0.borrow().off.contains(&class)
    }

    /// Returns the classes that are off, in the order of the file.
    pub fn off(&self) -> Vec<HelperClass> {
        self.0.borrow().off.clone()
    }

    /// Waits a limited time for the helper's first answer. Without it, the first client would see the tools change a
    /// moment later.
    pub async fn wait_for_answer(&self) {
        let mut known = self.0.subscribe();
        let answer = known.wait_for(|known| known.has_answered);
        if timeout(FIRST_ANSWER, answer).await.is_err() {
            tracing::warn!(
                "the helper has not reported its capabilities yet; gatewren keeps asking"
            );
        }
    }

    /// Subscribes to changes of the classes.
    pub fn changes(&self) -> CapabilityChanges {
        CapabilityChanges {
            seen: self.off(),
            bounds: self.clone(),
            known: self.0.subscribe(),
        }
    }

    /// Asks the helper, and again whenever it was unreachable; its last answer stays in effect.
    pub async fn follow(&self, helper: &HelperClient) -> Infallible {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut answered = false;
            let ended = self.receive(helper, &mut answered).await;
            tracing::debug!(?ended, "the helper's stream of capabilities ended");
            self.0
                .send_if_modified(|known| !std::mem::replace(&mut known.has_answered, true));
            if answered {
                pause = FIRST_PAUSE;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn receive(&self, helper: &HelperClient, answered: &mut bool) -> Result<(), HelperError> {
        let limits = OperationLimits {
            timeout_ms: u64::MAX,
            output_bytes: u64::MAX,
            processes: 1,
        };
        let mut running = helper.start(Operation::Bounds {}, limits, "bounds").await?;
        let mut line = Vec::new();
        loop {
            match running.next().await? {
                Frame::Output(Stream::Stdout, bytes) => line.extend(bytes),
                Frame::Output(Stream::Stderr, _) | Frame::Accepted | Frame::Started => {}
                Frame::End(_) => return Ok(()),
            }
            while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                let rest = line.split_off(end + 1);
                self.store_answer(&line);
                *answered = true;
                line = rest;
            }
            if line.len() > MAX_LINE {
                return Err(HelperError::Protocol("a line that is too long".to_owned()));
            }
        }
    }

    /// Stores the helper's answer. Ignores classes that this version does not know.
    fn store_answer(&self, line: &[u8]) {
        let Ok(keys) = serde_json::from_slice::<Vec<String>>(line) else {
            tracing::warn!("the helper's report of its capabilities is invalid");
            return;
        };
        let all = HelperClass::ALL.into_iter();
        let off = all.filter(|class| keys.iter().all(|key| key != class.key()));
        self.0.send_replace(KnownCapabilities {
            has_answered: true,
            off: off.collect(),
        });
    }
}

/// A subscription to changes of the classes.
#[derive(Debug)]
pub struct CapabilityChanges {
    bounds: HelperCapabilities,
    known: watch::Receiver<KnownCapabilities>,
    seen: Vec<HelperClass>,
}

impl CapabilityChanges {
    /// Waits for the next change and returns the classes that are now off.
    pub async fn next(&mut self) -> Vec<HelperClass> {
        loop {
            // Cannot fail: `bounds` holds the sender.
            let _ = self.known.changed().await;
            let off = self.bounds.off();
            if off != self.seen {
                self.seen.clone_from(&off);
                return off;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_the_helper_says_last_holds() {
        let bounds = HelperCapabilities::unknown();
        let mut changes = bounds.changes();
        assert_eq!(bounds.off(), [], "nothing is known to be off");
        let off = [HelperClass::HostShell, HelperClass::Updates];
        let on = HelperClass::ALL
            .into_iter()
            .filter(|class| !off.contains(class));
        let mut keys: Vec<&str> = on.map(HelperClass::key).collect();
        keys.push("of_later");
        bounds.store_answer(format!("{}\n", serde_json::json!(keys)).as_bytes());
        assert_eq!(changes.next().await, off);
        assert!(!bounds.allows(HelperClass::HostShell) && bounds.allows(HelperClass::Power));
        bounds.store_answer(b"what?\n");
        assert_eq!(bounds.off(), off, "what is not understood changes nothing");
        bounds.store_answer(b"[]");
        assert_eq!(changes.next().await, HelperClass::ALL);
        bounds.wait_for_answer().await;
    }

    #[tokio::test]
    async fn a_helper_that_is_not_there_holds_up_nothing() {
        let bounds = HelperCapabilities::unknown();
        let helper = HelperClient::connect_to("/nonexistent/socket".into());
        tokio::select! {
            never = bounds.follow(&helper) => match never {},
            () = bounds.wait_for_answer() => {}
        }
        assert!(bounds.0.borrow().has_answered && bounds.off().is_empty());
    }
}

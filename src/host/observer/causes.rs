//! The mutating calls in progress, so that an observed change can be attributed to its call.

use gatewren_base::sys::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The calls in progress; clones share them. Their number is limited by the limit of concurrent calls.
#[derive(Debug, Clone, Default)]
pub struct Causes {
    calls: Arc<Mutex<Calls>>,
}

#[derive(Debug, Default)]
struct Calls {
    next: u64,
    under_way: BTreeMap<u64, String>,
}

/// A call in progress; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "dropped, the call is no longer under way"]
pub struct Cause {
    number: u64,
    causes: Causes,
}

impl Causes {
    /// Records that the call with this audit id has begun.
    pub fn begin(&self, audit_id: &str) -> Cause {
        let mut calls = lock(&self.calls);
        calls.next += 1;
        let number = calls.next;
        calls.under_way.insert(number, audit_id.to_owned());
        drop(calls);
        let causes = self.clone();
        Cause { number, causes }
    }

    /// Returns the cause of a change that is observed now: the only call in progress. With several calls the cause
    /// is unknown.
    pub fn only(&self) -> Option<String> {
        let calls = lock(&self.calls);
        let mut all = calls.under_way.values();
        let first = all.next().cloned();
        first.filter(|_| all.next().is_none())
    }
}

impl Drop for Cause {
    fn drop(&mut self) {
        lock(&self.causes.calls).under_way.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_put_down_to_the_only_call_under_way() {
        let causes = Causes::default();
        assert_eq!(causes.only(), None);
        let first = causes.begin("a1");
        assert_eq!(causes.only().as_deref(), Some("a1"));
        let second = causes.begin("a2");
        assert_eq!(causes.only(), None);
        drop(first);
        assert_eq!(causes.only().as_deref(), Some("a2"));
        drop(second);
        assert_eq!(causes.only(), None);
    }
}

//! The requests of one client that are under way, by id, so that each can be cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::protocol::Id;

/// Requests under way.
#[derive(Clone)]
pub struct InFlight {
    most: usize,
    open: Arc<Mutex<HashMap<Id, Cancelled>>>,
}

/// Whether a request was cancelled; nothing more is said of one that was.
#[derive(Clone)]
pub struct Cancelled(Arc<watch::Sender<bool>>);

impl Cancelled {
    /// Whether it was.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }
}

impl InFlight {
    /// At most so many; more are refused.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            open: Arc::default(),
        }
    }

    /// Begins a request; `None` when its id is under way or too many are.
    pub fn begin(&self, id: &Id) -> Option<CallInFlight> {
        let mut open = self.lock();
        if open.len() >= self.most || open.contains_key(id) {
            return None;
        }
        let cancelled = Cancelled(Arc::new(watch::Sender::new(false)));
        open.insert(id.clone(), cancelled.clone());
        Some(CallInFlight {
            among: self.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// Cancels a request; one that is unknown or has ended is left alone. Its id is free at once: the client
    /// has done with it, and how long the request takes to notice is not its business.
    pub fn cancel(&self, id: &Id) {
        if let Some(cancelled) = self.lock().remove(id) {
            cancelled.0.send_replace(true);
        }
    }

    /// Cancels all of them.
    pub fn cancel_all(&self) {
        for cancelled in self.lock().values() {
            cancelled.0.send_replace(true);
        }
    }

    /// Whether none is under way.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, Cancelled>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way; dropping it takes it off the list.
pub struct CallInFlight {
    among: InFlight,
    id: Id,
    cancelled: Cancelled,
}

impl CallInFlight {
    /// Waits for the client to cancel it.
    pub async fn cancelled(&self) {
        let _ = self.cancelled.0.subscribe().wait_for(|is| *is).await;
    }

    /// Its mark, for what was said on its behalf and has not left yet.
    pub fn mark(&self) -> Cancelled {
        self.cancelled.clone()
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        let mut open = self.among.lock();
        let same = |found: &Cancelled| Arc::ptr_eq(&found.0, &self.cancelled.0);
        if open.get(&self.id).is_some_and(same) {
            open.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_id_is_in_flight_once_and_cancelled_once() {
        let calls = InFlight::new(2);
        let call = calls.begin(&Id::Number(1)).unwrap();
        assert!(calls.begin(&Id::Number(1)).is_none());
        calls.cancel(&Id::Number(2));
        assert!(!call.mark().is_set());
        calls.cancel(&Id::Number(1));
        call.cancelled().await;
        assert!(call.mark().is_set());
        let again = calls.begin(&Id::Number(1)).unwrap();
        drop(call);
        assert!(!calls.is_empty() && !again.mark().is_set());
        drop(again);
        assert!(calls.is_empty());
    }

    #[test]
    fn so_many_and_no_more() {
        let calls = InFlight::new(1);
        let _first = calls.begin(&Id::Number(1)).unwrap();
        assert!(calls.begin(&Id::Number(2)).is_none());
    }
}

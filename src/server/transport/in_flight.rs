//! The requests of one client that are in progress, by id, so that each can be cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use gatewren_base::sys::lock;
use gatewren_wire::protocol::RequestId;

/// The requests in progress.
#[derive(Clone)]
pub struct InFlight {
    most: usize,
    open: Arc<Mutex<HashMap<RequestId, CancelFlag>>>,
}

/// Whether a request was cancelled; nothing more is sent for a cancelled request.
#[derive(Clone)]
pub struct CancelFlag(Arc<watch::Sender<bool>>);

impl CancelFlag {
    /// Whether the request was cancelled.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Cancels this request, and no later one with its id.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

impl InFlight {
    /// Creates an empty table with a maximum size; further requests are refused.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            open: Arc::default(),
        }
    }

    /// Adds a request; `None` if its id is already in use or the table is full.
    pub fn begin(&self, id: &RequestId) -> Option<CallInFlight> {
        let mut open = lock(&self.open);
        if open.len() >= self.most || open.contains_key(id) {
            return None;
        }
        let cancelled = CancelFlag(Arc::new(watch::Sender::new(false)));
        open.insert(id.clone(), cancelled.clone());
        Some(CallInFlight {
            among: self.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// Cancels a request; returns whether it was in progress. Its id is free at once: the client need not know how
    /// long the request takes to notice.
    pub fn cancel(&self, id: &RequestId) -> bool {
        let cancelled = lock(&self.open).remove(id);
        if let Some(cancelled) = &cancelled {
            cancelled.0.send_replace(true);
        }
        cancelled.is_some()
    }

    /// Returns the flag of a request in progress.
    pub fn flag(&self, id: &RequestId) -> Option<CancelFlag> {
        lock(&self.open).get(id).cloned()
    }

    /// Cancels all requests.
    pub fn cancel_all(&self) {
        for cancelled in lock(&self.open).values() {
            cancelled.0.send_replace(true);
        }
    }

    /// Whether no request is in progress.
    pub fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }
}

/// A request in progress; dropping it removes it from the table.
pub struct CallInFlight {
    among: InFlight,
    id: RequestId,
    cancelled: CancelFlag,
}

impl CallInFlight {
    /// Waits for the client to cancel it.
    pub async fn cancelled(&self) {
        let _ = self.cancelled.0.subscribe().wait_for(|is| *is).await;
    }

    /// Its cancellation flag, for messages of the request that were not sent yet.
    pub fn mark(&self) -> CancelFlag {
        self.cancelled.clone()
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        let mut open = lock(&self.among.open);
        let same = |found: &CancelFlag| Arc::ptr_eq(&found.0, &self.cancelled.0);
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
        let call = calls.begin(&RequestId::Number(1)).unwrap();
        assert!(calls.begin(&RequestId::Number(1)).is_none());
        calls.cancel(&RequestId::Number(2));
        assert!(!call.mark().is_set());
        calls.cancel(&RequestId::Number(1));
        call.cancelled().await;
        assert!(call.mark().is_set());
        let again = calls.begin(&RequestId::Number(1)).unwrap();
        drop(call);
        assert!(!calls.is_empty() && !again.mark().is_set());
        drop(again);
        assert!(calls.is_empty());
    }

    #[test]
    fn so_many_and_no_more() {
        let calls = InFlight::new(1);
        let _first = calls.begin(&RequestId::Number(1)).unwrap();
        assert!(calls.begin(&RequestId::Number(2)).is_none());
    }
}

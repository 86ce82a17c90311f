//! Where the helper's client gets the head of the front's audit.

use std::fmt;
use std::sync::OnceLock;

use crate::exec::AuditHead;

/// Gives the head of the audit; none before [`HeadSource::set`].
#[derive(Default)]
pub struct HeadSource(OnceLock<Box<Ask>>);

type Ask = dyn Fn() -> Option<AuditHead> + Send + Sync;

impl HeadSource {
    /// Asks `ask` from now on. The first one stays.
    pub fn set(&self, ask: impl Fn() -> Option<AuditHead> + Send + Sync + 'static) {
        // It is set once, where the server is built.
        let _ = self.0.set(Box::new(ask));
    }

    /// The head of the audit as it is now.
    pub fn now(&self) -> Option<AuditHead> {
        self.0.get().and_then(|ask| ask())
    }
}

impl fmt::Debug for HeadSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeadSource").field(&self.now()).finish()
    }
}

//! The source of the front's current audit head, which the client sends with each operation.

use std::fmt;
use std::sync::OnceLock;

use gatewren_wire::operations::AuditHead;

/// Returns the head of the audit; `None` before [`AuditHeadSource::set`].
#[derive(Default)]
pub struct AuditHeadSource(OnceLock<Box<Ask>>);

type Ask = dyn Fn() -> Option<AuditHead> + Send + Sync;

impl AuditHeadSource {
    /// Uses `ask` from now on. Only the first call has an effect.
    pub fn set(&self, ask: impl Fn() -> Option<AuditHead> + Send + Sync + 'static) {
        // It is set once, where the server is built.
        let _ = self.0.set(Box::new(ask));
    }

    /// Returns the current head of the audit.
    pub fn now(&self) -> Option<AuditHead> {
        self.0.get().and_then(|ask| ask())
    }
}

impl fmt::Debug for AuditHeadSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeadSource").field(&self.now()).finish()
    }
}

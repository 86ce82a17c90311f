//! Names for calls, short enough to read out: the same in the answer, the journal, the audit and the helper.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

static NEXT: AtomicU64 = AtomicU64::new(0);
static START: OnceLock<u64> = OnceLock::new();

/// A reference that no other call of this run has, and hardly one of another run.
pub fn next() -> String {
    let start = *START.get_or_init(|| Uuid::new_v4().as_u64_pair().0);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:012x}", start.wrapping_add(count) & 0xffff_ffff_ffff)
}

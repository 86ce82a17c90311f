//! References of calls, short enough to read out: the same in the answer, the journal, the audit and the helper.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use uuid::Uuid;

static NEXT: AtomicU64 = AtomicU64::new(0);
static START: OnceLock<u64> = OnceLock::new();

/// Returns a reference that is unique within this run, and very likely across runs.
pub fn next() -> Arc<str> {
    let start = *START.get_or_init(|| Uuid::new_v4().as_u64_pair().0);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut rest = start.wrapping_add(count);
    let mut digits = [0; 12];
    for digit in digits.iter_mut().rev() {
        let value = u32::try_from(rest & 0xf).ok();
        let character = value.and_then(|value| char::from_digit(value, 16));
        *digit = character.map_or(b'0', |character| character as u8);
        rest >>= 4;
    }
    str::from_utf8(&digits).unwrap_or_default().into()
}

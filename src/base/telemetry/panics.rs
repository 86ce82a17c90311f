//! Logs a panic as an ordinary line, without secrets.

use std::panic::{self, PanicHookInfo};

use super::redact_text::redact_text;

/// The longest message that is logged; the rest is cut.
const MAX_MESSAGE_CHARS: usize = 500;

/// Replaces Rust's default output for panics.
pub fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let (place, message) = describe_panic(panic);
        tracing::error!(
            place,
            message,
            "a task of gatewren panicked; this is a bug in gatewren"
        );
    }));
}

fn describe_panic(panic: &PanicHookInfo<'_>) -> (String, String) {
    let place = panic
        .location()
        .map_or_else(String::new, ToString::to_string);
    let message = panic.payload_as_str().unwrap_or("no message");
    let message = redact_text(message)
        .chars()
        .take(MAX_MESSAGE_CHARS)
        .collect();
    (place, message)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_panic_is_told_without_the_secret_in_it() {
        // The hook is process-wide: this one examines only panics of this thread.
        let seen = Arc::new(Mutex::new(None));
        let (kept, thread) = (Arc::clone(&seen), std::thread::current().id());
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if std::thread::current().id() == thread {
                *kept.lock().unwrap() = Some(describe_panic(panic));
            } else {
                before(panic);
            }
        }));
        let secret = "hunter2";
        let broken = panic::catch_unwind(|| panic!("cannot run: login --password {secret} at box"));
        assert!(broken.is_err());
        let (place, message) = seen.lock().unwrap().take().unwrap();
        assert_eq!(message, "cannot run: login --password [redacted] at box");
        assert!(place.contains("panics.rs"), "{place}");
    }
}

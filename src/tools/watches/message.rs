//! The messages of a watch to the owner and to subscribers of the notifications.

use super::condition::WatchSpec;
use super::phase::{DueMessage, WatchState};
use gatewren_base::sys::rfc3339;
use gatewren_store::state::Notice;
use gatewren_store::vault::StoredWatch;

/// Writes a message. It has neither the watch's name nor its agent's: others who may see the container can read it.
pub fn notice(
    due: DueMessage,
    watch: &StoredWatch,
    spec: &WatchSpec,
    state: &WatchState,
) -> Notice {
    let words = spec.public_words();
    let since = rfc3339(state.since_ms);
    let (level, title, found) = match due {
        DueMessage::Fired(_) => (
            "error",
            words,
            format!(
                "Since {since}, for at least {} s. Found: {}.",
                spec.for_s, state.seen
            ),
        ),
        DueMessage::Recovered(_) => (
            "warning",
            format!("over: {words}"),
            format!("No longer so since {since}. Found: {}.", state.seen),
        ),
        DueMessage::Unable => (
            "warning",
            format!("cannot be checked: {words}"),
            format!("The checks fail: {}.", state.seen),
        ),
    };
    let held_back = match due {
        DueMessage::Fired(true) | DueMessage::Recovered(true) => {
            " It changes often: further messages are held back for up to an hour."
        }
        _ => "",
    };
    Notice {
        container: spec.container.as_ref().map(ToString::to_string),
        level,
        title,
        message: format!(
            "{found}{held_back} gatewren watch show {} shows the watch.",
            watch.id
        ),
        change: None,
    }
}

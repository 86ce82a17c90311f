//! A cache for the long text that was read last: a change notification makes several subscribers read the same
//! text.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::sleep;

use gatewren_base::sys::lock;
use gatewren_store::state::{DocumentIdentity, Pointer, VisibleValue};
use gatewren_wire::protocol::QuotedJson;

/// A text that was not requested for this long is dropped.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// The maximum size of a cached text; a longer one is rendered for each reader.
const MAX_BYTES: usize = 16 << 20;

/// At most one text, and only for readers who see the whole document that it was rendered from. Clones share it.
///
/// Fast path: with `QuotedJson`, serving 10 MB costs 0.96 times what hyper needs for the bytes alone, instead of
/// 17.6.
#[derive(Debug, Clone, Default)]
pub struct CachedText(Arc<Mutex<Slot>>);

#[derive(Debug, Default)]
struct Slot {
    kept: Option<Kept>,
    /// Whether a task is running that drops it.
    is_watched: bool,
}

#[derive(Debug)]
struct Kept {
    place: Pointer,
    edition: DocumentIdentity,
    text: QuotedJson,
    /// Whether it was requested since the last check.
    asked_for: bool,
}

impl CachedText {
    /// Returns the text of a value: from the cache, or newly rendered.
    pub fn of(&self, place: &Pointer, seen: VisibleValue<'_>) -> QuotedJson {
        if !seen.is_whole() {
            return QuotedJson::of(seen.value);
        }
        if let Some(text) = self.find(place, seen) {
            return text;
        }
        let text = QuotedJson::of(seen.value);
        if let QuotedJson::Long(pieces) = &text
            && pieces.iter().map(Bytes::len).sum::<usize>() <= MAX_BYTES
        {
            self.keep(place, seen, &text);
        }
        text
    }

    fn find(&self, place: &Pointer, seen: VisibleValue<'_>) -> Option<QuotedJson> {
        let mut slot = lock(&self.0);
        let kept = slot.kept.as_mut()?;
        if seen.is_of(&kept.edition) {
            if kept.place != *place {
                return None;
            }
            kept.asked_for = true;
            return Some(kept.text.clone());
        }
        // Dropped before the new text is rendered: both would take twice the memory.
        let old = slot.kept.take();
        drop(slot);
        drop(old);
        None
    }

    fn keep(&self, place: &Pointer, seen: VisibleValue<'_>, text: &QuotedJson) {
        // Without a runtime, no task could drop it.
        let (Some(edition), Ok(runtime)) = (seen.edition(), Handle::try_current()) else {
            return;
        };
        let mut slot = lock(&self.0);
        let before = slot.kept.replace(Kept {
            place: place.clone(),
            edition,
            text: text.clone(),
            asked_for: true,
        });
        if !slot.is_watched {
            slot.is_watched = true;
            runtime.spawn(watch(Arc::downgrade(&self.0)));
        }
        drop(slot);
        drop(before);
    }
}

/// Drops the cached text when it is no longer requested.
async fn watch(slot: Weak<Mutex<Slot>>) {
    loop {
        sleep(KEPT_FOR).await;
        let Some(kept) = slot.upgrade().map(CachedText) else {
            return;
        };
        let mut slot = lock(&kept.0);
        match &mut slot.kept {
            Some(kept) if kept.asked_for => kept.asked_for = false,
            unused => {
                let unused = unused.take();
                slot.is_watched = false;
                drop(slot);
                return drop(unused);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use gatewren_base::config::Reach;
    use gatewren_base::sys::Scratch;
    use gatewren_store::state::{Author, State, StateView, StateViews};

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    async fn put(state: &State, place: &str, value: Value) {
        let (author, place) = (Author::observer(), at(place));
        state.put(&author, &place, Some(value)).await.unwrap();
    }

    fn text(kept: &CachedText, view: &StateView, place: &str) -> QuotedJson {
        let pointer = at(place);
        view.seen_at(&pointer, |seen| kept.of(&pointer, seen))
            .unwrap()
    }

    fn is_shared(one: &QuotedJson, other: &QuotedJson) -> bool {
        match (one, other) {
            (QuotedJson::Long(one), QuotedJson::Long(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_text_is_shared_until_the_document_changes_or_nobody_asks() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let views = StateViews::new(state.clone());
        let view = views.view_for("a", &Reach::everything());
        let other = views.view_for("b", &Reach::everything());
        let long = |n: u64| json!({ "n": n, "x": "x".repeat(100_000) });
        put(&state, "/public", json!({ "long": long(1), "short": 1 })).await;

        let kept = CachedText::default();
        let first = text(&kept, &view, "/public/long");
        assert_eq!(first, QuotedJson::of(&long(1)));
        assert!(is_shared(&first, &text(&kept, &other, "/public/long")));
        // A short text is not cached.
        assert_eq!(
            text(&kept, &view, "/public/short"),
            QuotedJson::of(&json!(1))
        );
        assert!(is_shared(&first, &text(&kept, &view, "/public/long")));

        put(&state, "/public/long/n", json!(2)).await;
        let second = text(&kept, &view, "/public/long");
        assert_eq!(second, QuotedJson::of(&long(2)));

        for _ in 0..9 {
            sleep(KEPT_FOR * 9 / 10).await;
            assert!(is_shared(&second, &text(&kept, &view, "/public/long")));
        }
        sleep(2 * KEPT_FOR + Duration::from_secs(1)).await;
        assert!(lock(&kept.0).kept.is_none() && !lock(&kept.0).is_watched);
        let third = text(&kept, &view, "/public/long");
        assert!(third == second && !is_shared(&third, &second));
    }

    #[tokio::test]
    async fn what_is_cut_down_for_one_is_kept_for_nobody() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let views = StateViews::new(state.clone());
        let web = json!({ "x": "x".repeat(100_000) });
        let public = json!({ "packageData": { "web": web, "db": { "secret": 1 } } });
        put(&state, "/public", public.clone()).await;
        let space = gatewren_base::config::Space {
            containers: vec!["web".parse().unwrap()],
            host: false,
        };
        let narrow = views.view_for("a", &Reach::of(&space));
        let whole = views.view_for("b", &Reach::everything());
        let kept = CachedText::default();

        let cut = QuotedJson::of(&json!({ "packageData": { "web": web } }));
        assert_eq!(text(&kept, &narrow, "/public"), cut);
        assert!(lock(&kept.0).kept.is_none());
        assert_eq!(text(&kept, &whole, "/public"), QuotedJson::of(&public));
        assert_eq!(text(&kept, &narrow, "/public"), cut, "not that of all");
        // A value that both see completely shares one text.
        let place = "/public/packageData/web";
        let shared = text(&kept, &narrow, place);
        assert!(is_shared(&shared, &text(&kept, &whole, place)));
        assert!(
            narrow
                .seen_at(&at("/public/packageData/db"), |_| ())
                .is_none()
        );
    }
}

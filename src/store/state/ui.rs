//! `/public/ui`, the only part of the document that agents write themselves, and its size limits.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::author::Author;
use super::diff;
use super::error::StateError;
use super::operation::depth;
use super::pointer::Pointer;
use super::size::text_len;
use super::store::State;

/// The largest value of `/public/ui`, in bytes of compact JSON; a write that exceeds it is rejected. The whole
/// document is in memory, and models read it.
const MAX_BYTES: i64 = 256 * 1024;

/// The most levels below `/public/ui`, counting the keys of the pointer and those of the value; deeper writes are
/// rejected.
const MAX_LEVELS: usize = 16;

/// Write access to `/public/ui`; clones share it.
#[derive(Debug, Clone)]
pub struct Ui {
    state: State,
    /// Held from the size check until the write: two values that fit individually may exceed the limit together.
    turn: Arc<Mutex<()>>,
}

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UiError {
    /// The place is neither `/public/ui` nor below it.
    Elsewhere,
    /// The value would exceed the depth limit.
    TooDeep,
    /// The value would have this many bytes, which exceeds the limit.
    TooLarge(i64),
    /// The state rejected the change or cannot be written.
    State(StateError),
}

impl Ui {
    /// Returns write access to this state.
    pub fn new(state: State) -> Self {
        Self {
            state,
            turn: Arc::default(),
        }
    }

    /// The place of the value, `/public/ui`.
    pub fn place() -> Pointer {
        Pointer::root().child("public").child("ui")
    }

    /// Sets the value at a place, or removes it if `value` is absent. Returns the first revision that contains the
    /// result. Missing parents are created as objects, and an unchanged value makes no revision.
    pub async fn put(
        &self,
        author: &Author,
        at: &Pointer,
        value: Option<Value>,
    ) -> Result<u64, UiError> {
        let way = Self::place().way_to(at).ok_or(UiError::Elsewhere)?;
        if way.tokens().len() + value.as_ref().map_or(0, depth) > MAX_LEVELS {
            return Err(UiError::TooDeep);
        }
        let _turn = self.turn.lock().await;
        self.must_fit(at, value.clone())?;
        let written = self.state.put(author, at, value).await;
        written.map_err(UiError::State)
    }

    /// A change that shrinks the value is always allowed: another program may have exceeded the limit.
    fn must_fit(&self, at: &Pointer, value: Option<Value>) -> Result<(), UiError> {
        let document = self.state.document();
        let before = Self::place().get(&document.root).cloned();
        let size = |part: &Option<Value>| part.as_ref().map_or(0, text_len);
        let mut part = before.as_ref().map_or_else(
            || json!({ "public": {} }),
            |ui| json!({ "public": { "ui": ui } }),
        );
        for operation in diff::put(&part, at, value) {
            // The state rejects an operation that does not apply, with the reason.
            let _ = operation.apply(&mut part);
        }
        let after = size(&Self::place().get(&part).cloned());
        if after > MAX_BYTES && after > size(&before) {
            return Err(UiError::TooLarge(after));
        }
        Ok(())
    }
}

impl fmt::Display for UiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elsewhere => f.write_str(
                "only /public/ui and paths below it can be written; the rest of the state is read-only",
            ),
            Self::TooDeep => write!(f, "the limit is {MAX_LEVELS} levels below /public/ui"),
            Self::TooLarge(bytes) => write!(
                f,
                "/public/ui would have {bytes} bytes; the limit is {MAX_BYTES}: remove values that are not needed"
            ),
            Self::State(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::super::author::Actor;
    use super::*;

    fn open(scratch: &Scratch) -> (State, Ui) {
        let state = State::open(&scratch.join("state.db")).unwrap();
        (state.clone(), Ui::new(state))
    }

    async fn put(ui: &Ui, at: &str, value: Option<Value>) -> Result<u64, UiError> {
        let author = Author::from(Actor::Agent("a1".into())).because("r-1");
        ui.put(&author, &Pointer::parse(at).unwrap(), value).await
    }

    #[tokio::test]
    async fn only_the_part_for_it_is_written() {
        let scratch = Scratch::new();
        let (state, ui) = open(&scratch);
        let at = "/public/ui/list/first";
        assert_eq!(put(&ui, at, Some(json!({ "a": null }))).await, Ok(1));
        assert_eq!(put(&ui, at, Some(json!({ "a": null }))).await, Ok(1));
        for elsewhere in [
            "",
            "/public",
            "/public/uiX",
            "/public/serverInfo",
            "/private",
        ] {
            assert_eq!(
                put(&ui, elsewhere, Some(json!(1))).await,
                Err(UiError::Elsewhere)
            );
            assert_eq!(put(&ui, elsewhere, None).await, Err(UiError::Elsewhere));
        }
        let document = json!({ "public": { "ui": { "list": { "first": { "a": null } } } } });
        assert_eq!(state.document().root, document);
        assert_eq!(put(&ui, "/public/ui/list", None).await, Ok(2));
        assert!(matches!(
            put(&ui, "/public/ui/list/first/b", Some(json!(1))).await,
            Ok(3)
        ));
        put(&ui, "/public/ui/n", Some(json!(1))).await.unwrap();
        let refused = put(&ui, "/public/ui/n/below", Some(json!(1))).await;
        assert!(matches!(refused, Err(UiError::State(_))), "{refused:?}");
    }

    #[tokio::test]
    async fn it_is_bounded_in_size_and_depth_and_can_always_be_made_smaller() {
        let scratch = Scratch::new();
        let (state, ui) = open(&scratch);
        let half = json!("x".repeat(150_000));
        put(&ui, "/public/ui/a", Some(half.clone())).await.unwrap();
        let refused = put(&ui, "/public/ui/b", Some(half.clone())).await;
        assert!(
            matches!(refused, Err(UiError::TooLarge(300_000..))),
            "{refused:?}"
        );
        // Two concurrent writes run one after the other.
        let quarter = Some(json!("x".repeat(80_000)));
        let (one, other) = tokio::join!(
            put(&ui, "/public/ui/c", quarter.clone()),
            put(&ui, "/public/ui/d", quarter)
        );
        assert_eq!([&one, &other].iter().filter(|put| put.is_ok()).count(), 1);

        let much = json!({ "a": "x".repeat(400_000), "b": half });
        let local = Author::from(Actor::Local("other".into()));
        state.put(&local, &Ui::place(), Some(much)).await.unwrap();
        assert!(put(&ui, "/public/ui/c", Some(json!(1))).await.is_err());
        put(&ui, "/public/ui/b", None).await.unwrap();

        let deep = (0..16).fold(json!(1), |below, _| json!([below]));
        assert_eq!(
            put(&ui, "/public/ui/x", Some(deep)).await,
            Err(UiError::TooDeep)
        );
        let place = format!("/public/ui{}", "/k".repeat(17));
        assert_eq!(put(&ui, &place, None).await, Err(UiError::TooDeep));
    }
}

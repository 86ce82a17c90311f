//! What the owner reads about tools: a sentence for a call of each, and what undoes it.

mod sentences;
mod undo;

pub use sentences::{ToolSentence, loses_data, sentence};
#[cfg(any(test, feature = "testing"))]
pub use undo::undo_rows;
pub use undo::{NO_UNDO, undo_of};

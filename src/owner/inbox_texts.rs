//! The texts of the cards in the inbox, and of what follows a decision.

pub const EXPIRES: &str = "expires";
pub const NO_REASON: &str = "gave no reason.";
pub const NOW: &str = "Now:";
pub const DETAILS: &str = "Details";
pub const MORE: &str = "More: a note, or allow the same for a while";
pub const NO_WAY_BACK: &str = "cannot be undone";
pub const FROM: &str = "from";
pub const HOW: &str = "How";
pub const NO_WAY_BACK_HOW: &str = "This cannot be undone. To approve it, type the name:";
pub const NAME: &str = "Name";
pub const OTHER_NAME: &str = "This is another name; nothing was approved.";
pub const IS_RUNNING: &str = "Approved, it is running:";
pub const DONE: &str = "Done:";
pub const HAS_FAILED: &str = "Approved, and it failed:";
pub const REJECTED: &str = "Rejected, it does not run:";
pub const WAITS_AGAIN: &str = "Not run, it waits for you again:";
pub const RESULT: &str = "Result";
pub const UNDO: &str = "Undo";

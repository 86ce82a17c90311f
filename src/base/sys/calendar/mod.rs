//! Times in the calendar syntax of systemd.time(7): parsing, the next times, and a description in words.

mod error;
mod expression;
mod field;
mod search;
mod words;
mod zone;

pub use error::CalendarError;
pub use expression::Calendar;

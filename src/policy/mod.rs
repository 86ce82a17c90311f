//! May it run: every call of every tool asks here, and gets a verdict that cannot be ignored.
#![forbid(unsafe_code)]

mod rules;
mod verdict;

pub use rules::{Subject, class, mode};
pub use verdict::{Verdict, is_proposed, judge, judge_approved, sees};

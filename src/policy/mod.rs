//! May it run: every call of every tool asks here, and gets a verdict that cannot be ignored.
#![forbid(unsafe_code)]

mod rules;
mod verdict;

pub use rules::{Subject, class, mode};
pub use verdict::{Verdict, judge, judge_approved, sees};

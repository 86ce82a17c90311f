//! Decides whether a call may run: each call of each tool needs a verdict, which cannot be ignored.
#![forbid(unsafe_code)]

mod confirmation;
mod disclosure;
mod introduction;
mod question;
mod rules;
mod schedule_words;
mod scheduled;
mod verdict;

pub use confirmation::{CallToConfirm, Confirmation, Confirmations, PATIENCE};
pub use disclosure::{ShownArgument, shown_arguments};
pub use introduction::introduce;
pub use question::{ConfirmationQuestion, question};
pub use rules::{
    ALL_TOOLSETS, PolicySubject, class, has_brief_entries, has_short_list, lets_propose, mode,
    shows, stricter_argument,
};
pub use schedule_words::schedule_words;
pub use scheduled::{as_of_creation, judge_scheduled};
pub use verdict::{
    Verdict, confirms, is_proposed, judge, judge_approved, judge_on_host, judge_target_check,
    lists, proposes, sees,
};

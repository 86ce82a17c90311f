//! Every test that needs more than one room, in one binary: a link costs more than a test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails loudly"
)]

mod check;
mod helper;
mod house_rules;
mod killing;
mod support;

//! Why a calendar expression is refused.

use std::fmt;

/// An expression that is not in systemd's calendar syntax, or that never applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarError(&'static str);

impl CalendarError {
    pub(super) const fn new(why: &'static str) -> Self {
        Self(why)
    }
}

impl fmt::Display for CalendarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; use systemd's calendar syntax (systemd.time(7)): `*-*-* 03:00`, `daily`, `Mon..Fri 02:30`, `*:0/15`",
            self.0
        )
    }
}

impl std::error::Error for CalendarError {}

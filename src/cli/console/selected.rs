//! Selects one item by what the owner types: its id, or a unique beginning of it.

use super::style::is_read_by_person;

/// The least number of characters of a beginning. A shorter one is more often a typing error than intended.
const LEAST: usize = 4;

/// The digits of an id that a list shows to a person: ids are random, so two of a billion begin with the same ones.
const SHOWN: usize = 8;

/// The kind of the items, for the errors.
pub struct SelectedKind {
    /// The beginning of every id, such as `job_`; it need not be typed.
    pub tag: &'static str,
    /// The noun, such as `job`.
    pub noun: &'static str,
    /// The subcommand that lists all, such as `job list`.
    pub list: &'static str,
}

impl SelectedKind {
    /// An id as a list shows it: whole, or for a person its beginning, which every command takes.
    pub fn shown(&self, id: &str) -> String {
        let most = self.tag.len() + SHOWN;
        let most = if is_read_by_person() { most } else { id.len() };
        id.chars().take(most).collect()
    }

    /// Whether an id begins with the typed text.
    pub fn begins(&self, id: &str, named: &str) -> bool {
        let digits = named.strip_prefix(self.tag).unwrap_or(named);
        let id = id.strip_prefix(self.tag);
        digits.len() >= LEAST && id.is_some_and(|id| id.starts_with(digits))
    }

    /// Returns the only item that was found.
    ///
    /// # Errors
    /// If none or several were found.
    pub fn only<T>(&self, found: impl IntoIterator<Item = T>, named: &str) -> Result<T, String> {
        let Self { noun, list, .. } = self;
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(format!(
                "there is no {noun} {named:?}; `gatewren {list}` shows them"
            )),
            (Some(_), Some(_)) => Err(format!(
                "more than one {noun} matches {named:?}; give more of the id, as `gatewren {list}` shows it"
            )),
        }
    }
}

//! Sections whose names their owner chooses: what they may be called, and how all of a family are told.

use std::collections::BTreeMap;

use super::key::Key;

/// A longer name is refused.
pub(super) const MAX_NAME_BYTES: usize = 32;

/// So `*`, which stands for the whole box, is nobody's name.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(fits)
}

/// Those that came, went, or are defined otherwise, by their paths.
pub(super) fn other<T: PartialEq>(
    family: &str,
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
) -> Vec<String> {
    let names = before.keys().chain(after.keys());
    let other = names.filter(|name| before.get(*name) != after.get(*name));
    let mut other: Vec<String> = other.map(|name| format!("{family}.{name}")).collect();
    other.sort();
    other.dedup();
    other
}

/// Every one as a part of a file.
#[cfg(feature = "fuzzing")]
pub(super) fn written<T>(family: &str, keys: &[Key<T>], all: &BTreeMap<String, T>) -> String {
    let mut lines = Vec::new();
    for (name, one) in all {
        lines.push(format!("\n[{family}.{name}]"));
        let values = keys
            .iter()
            .map(|key| format!("{} = {}", key.name, (key.write)(one)));
        lines.extend(values);
    }
    lines.join("\n")
}

/// The keys of every one: its section, the key, its value, whether a new one waits for a restart.
pub(super) fn values<T>(
    family: &str,
    keys: &[Key<T>],
    all: &BTreeMap<String, T>,
) -> Vec<(String, &'static str, String, bool)> {
    let mut values = Vec::new();
    for (name, one) in all {
        let section = format!("{family}.{name}");
        let of = |key: &Key<T>| {
            (
                section.clone(),
                key.name,
                (key.write)(one),
                key.needs_restart,
            )
        };
        values.extend(keys.iter().map(of));
    }
    values
}

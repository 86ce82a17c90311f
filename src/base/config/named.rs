//! Sections with names that the owner chooses: valid names, and the values of all sections of a family.

use std::collections::BTreeMap;

use super::key::Key;

/// The maximum length of a name.
pub(super) const MAX_NAME_BYTES: usize = 32;

/// Returns whether a name is valid. `*`, which means the host and all containers, is not.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(fits)
}

/// Returns the paths of the sections that were added, removed or changed.
pub(super) fn find_changed<T: PartialEq>(
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

/// Returns all sections as a part of a file.
#[cfg(feature = "testing")]
pub(super) fn write_sections<T>(
    family: &str,
    keys: &[Key<T>],
    all: &BTreeMap<String, T>,
) -> String {
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

/// Returns the values of all sections: the section, the key, its value, and whether a new value needs a restart.
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

//! `[spaces.NAME]`: reads the spaces from the settings.

use super::error::Problem;
use super::glob::Glob;
use super::key::{Key, key};
use super::named::{MAX_NAME_BYTES, is_name};
use super::reading::{Family, Named, shown};
use super::settings::Settings;
use super::shape::{Flag, List, Shape as _};
use super::space::Space;

/// The maximum number of spaces.
const MAX_SPACES: usize = 64;

/// The family of sections for the reader of the settings.
pub(super) const FAMILY: Family<Settings> = Family {
    section: "spaces",
    read,
};

/// An example section for the sample.
pub(super) const EXAMPLE: &str = "\
Spaces: named parts of the box. With any here, each new agent is kept in one of them, or in \"*\", the
whole box (`gatewren agent add NAME --space media`); what is outside does not exist for it.
containers: names of containers, where * stands for any run of characters and ? for one.
host: whether the machine itself is in it, with its units, disks and network.

[spaces.media]
containers = [\"jellyfin\", \"arr-*\"]
host = false";

const CONTAINERS: List<Glob> = List {
    entry: |text| text.parse().ok(),
    like: "a container's name in quotes, where * and ? may stand for characters, such as \"arr-*\"",
    may_be_empty: true,
};

#[rustfmt::skip]
pub(super) const KEYS: &[Key<Space>] = &[
    key!("spaces.*", "containers", containers, CONTAINERS, "Names of containers."),
    key!("spaces.*", "host",       host,       Flag,       "Whether the machine itself is in it."),
];

fn read(settings: &mut Settings, section: &Named<'_>) -> Vec<Problem> {
    let name = section.name();
    if !is_name(name) {
        let name = shown(name);
        let rule = format!("a space is called by 1 to {MAX_NAME_BYTES} of a-z, 0-9, _ and -");
        return vec![section.problem(format!("{rule}, and not \"{name}\""))];
    }
    let spaces = &mut settings.spaces;
    if spaces.len() >= MAX_SPACES && !spaces.contains_key(name) {
        return vec![section.problem(format!("there are at most {MAX_SPACES} spaces"))];
    }
    section.fill(KEYS, spaces.entry(name.to_owned()).or_default())
}

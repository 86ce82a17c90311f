//! `[spaces.NAME]`: reads the spaces from the settings.

use super::error::Problem;
use super::glob::Glob;
use super::key::{Key, key};
use super::named::{MAX_NAME_BYTES, is_name};
use super::reading::{NamedSection, SectionFamily, shorten_typed};
use super::settings::Settings;
use super::shape::{Flag, List, Shape as _};
use super::space::Space;

/// The maximum number of spaces.
const MAX_SPACES: usize = 64;

/// The family of sections for the reader of the settings.
pub(super) const FAMILY: SectionFamily<Settings> = SectionFamily {
    section: "spaces",
    read,
};

/// An example section for the sample.
pub(super) const EXAMPLE: &str = "\
Spaces: named parts of the server. If there are any, each new agent belongs to one of them, or to \"*\", the
whole server (`gatewren agent add NAME --space media`). Everything outside its space is invisible to the agent.
containers: names of containers, where * matches any characters and ? matches one.
host: whether the host itself is in the space, with its units, disks and network.

[spaces.media]
containers = [\"jellyfin\", \"arr-*\"]
host = false";

const CONTAINERS: List<Glob> = List {
    entry: |text| text.parse().ok(),
    like: "a container's name in quotes, where * matches any characters and ? matches one, such as \"arr-*\"",
    may_be_empty: true,
};

#[rustfmt::skip]
pub(super) const KEYS: &[Key<Space>] = &[
    key!("spaces.*", "containers", containers, CONTAINERS, "Names of containers."),
    key!("spaces.*", "host",       host,       Flag,       "Whether the host is in it."),
];

fn read(settings: &mut Settings, section: &NamedSection<'_>) -> Vec<Problem> {
    let name = section.name();
    if !is_name(name) {
        let name = shorten_typed(name);
        let rule = format!("the name of a space has 1 to {MAX_NAME_BYTES} of a-z, 0-9, _ and -");
        return vec![section.problem(format!("{rule}; \"{name}\" is invalid"))];
    }
    let spaces = &mut settings.spaces;
    if spaces.len() >= MAX_SPACES && !spaces.contains_key(name) {
        return vec![section.problem(format!("the limit is {MAX_SPACES} spaces"))];
    }
    section.fill(KEYS, spaces.entry(name.to_owned()).or_default())
}

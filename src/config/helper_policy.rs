//! What the root helper lets be done on this box at all, whatever the front asks for.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::error::{ConfigError, UnknownWord};
use super::glob::Glob;
use super::key::{Key, key};
use super::reading;
use super::shape::{Flag, List, Shape as _, Word};
use super::trust::doubt;

/// Where `gatewren helper` looks when it is told nothing.
pub const HELPER_POLICY_FILE: &str = "/etc/gatewren/helper.toml";

/// Whether commands may run in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// None may.
    Off,
    /// Any may, as root.
    Full,
}

/// The bounds that hold even if the front is taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperPolicy {
    /// Commands on the host.
    pub host_shell: Shell,
    /// Commands in containers.
    pub container_shell: Shell,
    /// The containers that may be seen and touched.
    pub containers: Vec<Glob>,
    /// Whether containers may be listed, looked at and watched.
    pub lxc_reads: bool,
    /// Whether containers may be started, stopped and restarted.
    pub lxc_writes: bool,
}

impl HelperPolicy {
    /// Reads the policy; a missing file is an error, but for [`HELPER_POLICY_FILE`].
    ///
    /// A file that somebody else than root and our own user may write or replace is refused: it would
    /// bound nobody.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let mut policy = Self::default();
        let may_be_missing = path == Path::new(HELPER_POLICY_FILE);
        let problems = match reading::alone(path, may_be_missing) {
            Ok(None) => Vec::new(),
            Ok(Some(file)) => reading::apply(&file, Self::KEYS, &mut policy),
            Err(problem) => vec![problem],
        };
        ConfigError::of(problems.into_iter().chain(doubt(path)).collect()).map(|()| policy)
    }

    /// Whether a container may be seen and touched.
    pub fn allows_container(&self, name: &str) -> bool {
        self.containers.iter().any(|glob| glob.matches(name))
    }

    pub(super) const INTRODUCTION: &'static str = "\
What gatewren's root helper does for the front, whatever the front asks for.
This file belongs to root: the front can neither write it nor change what it says, and a file that
others could write or replace is refused. The helper reads it when it starts, and again when it is told so by
`systemctl reload gatewren-helper`: what runs goes on, and a file that is wrong changes nothing.
Each thing that the helper can do belongs to one of host_shell, container_shell, lxc_reads and
lxc_writes; what is switched off there, or is about a container that is not in the list, is refused
to everybody. Beside these it only tells that it is there, what is mounted on the box and how full
that is, whether something keeps its clock right, and which programs have ports open.
Every value below is the default: uncomment a line to change it.";

    /// The keys, in the order of the sample.
    #[rustfmt::skip]
    pub(super) const KEYS: &'static [Key<Self>] = &[
        key!("", "host_shell", host_shell, Word,
            "Commands on the host as root: \"full\" or \"off\"."),
        key!("", "container_shell", container_shell, Word,
            "Commands in containers as root there: \"full\" or \"off\". The root of a container without id\n\
             maps is not far from the host's."),
        key!("", "containers", containers, GLOBS,
            "Containers that may be seen and touched; * stands for any run of characters, ? for one."),
        key!("", "lxc_reads", lxc_reads, Flag,
            "Whether containers may be listed, looked at and watched: their state, definition, addresses,\n\
             open ports, operating system, and what they use. Without it nothing is known of them."),
        key!("", "lxc_writes", lxc_writes, Flag,
            "Whether containers may be started, stopped and restarted."),
    ];
}

#[cfg(feature = "fuzzing")]
impl HelperPolicy {
    /// Reads a policy from the text of its file.
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        let mut policy = Self::default();
        let file = reading::Text::new(Path::new(HELPER_POLICY_FILE), text);
        let problems = reading::apply(&file, Self::KEYS, &mut policy);
        ConfigError::of(problems).map(|()| policy)
    }

    /// Every key with its value, as a file.
    pub fn to_text(&self) -> String {
        super::key::written(Self::KEYS, self)
    }
}

const GLOBS: List<Glob> = List {
    entry: |text| text.parse().ok(),
    like: "a container's name or a pattern, such as \"web\" or \"arr-*\"",
    may_be_empty: true,
};

/// Everything is on: this is what holds where no file was written.
impl Default for HelperPolicy {
    fn default() -> Self {
        Self {
            host_shell: Shell::Full,
            container_shell: Shell::Full,
            containers: "*".parse().into_iter().collect(),
            lxc_reads: true,
            lxc_writes: true,
        }
    }
}

impl fmt::Display for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Full => "full",
        })
    }
}

impl FromStr for Shell {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "off" => Ok(Self::Off),
            "full" => Ok(Self::Full),
            _ => Err(UnknownWord::new(word, &["off", "full"])),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::super::reference::helper_sample;
    use super::*;
    use crate::sys::Scratch;

    fn written(scratch: &Scratch, text: &str) -> PathBuf {
        let path = scratch.join("helper.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        path
    }

    #[test]
    fn the_sample_uncommented_is_the_defaults_and_stands_in_etc() {
        let scratch = Scratch::new();
        // A value that is the default is one with "#" and no space before it.
        let sample = helper_sample();
        let lines = sample.lines().map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') => key,
            _ => line,
        });
        let keys: Vec<&str> = lines.collect();
        assert!(keys.contains(&"lxc_reads = true"), "{sample}");
        let path = written(&scratch, &keys.join("\n"));
        assert_eq!(HelperPolicy::load(&path), Ok(HelperPolicy::default()));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/etc/helper.toml");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, helper_sample()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), helper_sample());
    }

    #[test]
    fn a_stricter_policy_is_read() {
        let scratch = Scratch::new();
        let text = "host_shell = \"off\"\ncontainer_shell = \"off\"\ncontainers = [\"web\", \"arr-*\"]\n\
                    lxc_reads = false\nlxc_writes = false\n";
        let policy = HelperPolicy::load(&written(&scratch, text)).unwrap();
        assert_eq!(policy.host_shell, Shell::Off);
        assert_eq!(policy.container_shell, Shell::Off);
        assert!(!policy.lxc_reads && !policy.lxc_writes);
        assert!(policy.allows_container("web") && policy.allows_container("arr-sonarr"));
        assert!(!policy.allows_container("webs") && !policy.allows_container("vault"));
    }

    #[test]
    fn no_container_is_allowed_by_an_empty_list() {
        let scratch = Scratch::new();
        let policy = HelperPolicy::load(&written(&scratch, "containers = []\n")).unwrap();
        assert!(!policy.allows_container("web"));
        assert!(HelperPolicy::default().allows_container("web"));
    }

    #[test]
    fn a_typing_error_never_loosens() {
        let scratch = Scratch::new();
        let path = written(&scratch, "host_shel = \"off\"\ncontainers = [\"a/b\"]\n");
        let said = HelperPolicy::load(&path).unwrap_err().to_string();
        let shown = path.display();
        assert_eq!(
            said,
            format!(
                "{shown}:1: unknown key \"host_shel\" in the head of the file; did you mean \
                 \"host_shell\"?\n{shown}:2: containers must be a list of 0 to 64 entries, each a \
                 container's name or a pattern, such as \"web\" or \"arr-*\", but is [\"a/b\"]"
            )
        );
    }
}

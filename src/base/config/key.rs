//! A row of the reference: a key, its help, and the functions that read and write its value.

use toml::de::DeValue;

/// A key of a settings file that fills an `S`.
pub(super) struct Key<S> {
    /// The section; empty for the head of the file, `spaces.*` for sections with names that the owner chooses.
    pub section: &'static str,
    /// The name in that section.
    pub name: &'static str,
    /// One or more lines for the sample and the man page.
    pub help: &'static str,
    /// Parses a value into its field, or returns the expected form.
    pub read: fn(&mut S, &DeValue<'_>) -> Result<(), String>,
    /// Returns the field's value as TOML.
    pub write: fn(&S) -> String,
    /// Copies the value from another `S`.
    pub copy: fn(&mut S, &S),
    /// Whether a new value takes effect only after a restart.
    pub needs_restart: bool,
}

impl<S> Key<S> {
    /// Returns whether the key belongs to this section.
    pub fn is_in(&self, section: &str) -> bool {
        match self.section.strip_suffix('*') {
            Some(family) => section.starts_with(family),
            None => self.section == section,
        }
    }

    /// Returns the name with the given section, for error messages.
    pub fn path_in(&self, section: &str) -> String {
        if section.is_empty() {
            self.name.to_owned()
        } else {
            format!("{section}.{}", self.name)
        }
    }
}

/// Makes a [`Key`]: section, name, field, shape of the values, help. `restart` at the end if a new value needs one.
macro_rules! key {
    ($section:literal, $name:literal, $($field:ident).+, $shape:expr, $help:literal) => {
        key!(@ $section, $name, $($field).+, $shape, $help, false)
    };
    ($section:literal, $name:literal, $($field:ident).+, $shape:expr, $help:literal, restart) => {
        key!(@ $section, $name, $($field).+, $shape, $help, true)
    };
    (@ $section:literal, $name:literal, $($field:ident).+, $shape:expr, $help:literal, $restart:literal) => {
        Key {
            section: $section,
            name: $name,
            help: $help,
            read: |settings, value| {
                settings.$($field).+ = $shape.read(value)?;
                Ok(())
            },
            write: |settings| $shape.write(&settings.$($field).+),
            copy: |to, from| to.$($field).+.clone_from(&from.$($field).+),
            needs_restart: $restart,
        }
    };
}

pub(super) use key;

/// Returns a sample file: the introduction, then each key commented out, with its help and default.
pub(super) fn sample<S: Default>(introduction: &str, keys: &[Key<S>]) -> String {
    let defaults = S::default();
    let mut lines = comment_lines(introduction);
    let mut section = "";
    for key in keys {
        lines.push(String::new());
        if key.section != section {
            section = key.section;
            lines.extend([format!("[{section}]"), String::new()]);
        }
        lines.extend(comment_lines(key.help));
        if key.needs_restart {
            lines.push("# A change needs a restart.".to_owned());
        }
        lines.push(format!("#{} = {}", key.name, (key.write)(&defaults)));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns all keys with their values, as a file.
#[cfg(feature = "testing")]
pub(super) fn write_keys<S>(keys: &[Key<S>], settings: &S) -> String {
    let mut lines = Vec::new();
    let mut section = "";
    for key in keys {
        if key.section != section {
            section = key.section;
            lines.push(format!("[{section}]"));
        }
        lines.push(format!("{} = {}", key.name, (key.write)(settings)));
    }
    lines.join("\n")
}

/// Returns each line as a comment.
pub(super) fn comment_lines(words: &str) -> Vec<String> {
    words.lines().map(|line| format!("# {line}")).collect()
}

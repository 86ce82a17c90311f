//! A row of the reference: one key, what it means, how it is read and how its value is written.

use toml::de::DeValue;

/// One key of a settings file that fills an `S`.
pub(super) struct Key<S> {
    /// The section it stands in; empty for the head of the file, and `spaces.*` for one whose name its owner
    /// chooses.
    pub section: &'static str,
    /// Its name in that section.
    pub name: &'static str,
    /// One or more lines for the sample and the man page.
    pub help: &'static str,
    /// Reads a value into its place, or says what was expected.
    pub read: fn(&mut S, &DeValue<'_>) -> Result<(), String>,
    /// The value in an `S`, as TOML.
    pub write: fn(&S) -> String,
    /// Takes the value over from another `S`.
    pub copy: fn(&mut S, &S),
    /// Whether a new value waits for the next start of whoever has read it.
    pub needs_restart: bool,
}

impl<S> Key<S> {
    /// Whether it stands in a section of this name.
    pub fn is_in(&self, section: &str) -> bool {
        match self.section.strip_suffix('*') {
            Some(family) => section.starts_with(family),
            None => self.section == section,
        }
    }

    /// The name with the section that it was found in, as errors call it.
    pub fn path_in(&self, section: &str) -> String {
        if section.is_empty() {
            self.name.to_owned()
        } else {
            format!("{section}.{}", self.name)
        }
    }
}

/// A [`Key`]: section, name, the field it fills, the shape of its values, help; `restart` at the end where a new value
/// waits for one.
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

/// A sample file: the introduction, then every key commented out, with its help and default.
pub(super) fn sample<S: Default>(introduction: &str, keys: &[Key<S>]) -> String {
    let defaults = S::default();
    let mut lines = commented(introduction);
    let mut section = "";
    for key in keys {
        lines.push(String::new());
        if key.section != section {
            section = key.section;
            lines.extend([format!("[{section}]"), String::new()]);
        }
        lines.extend(commented(key.help));
        if key.needs_restart {
            lines.push("# A change needs a restart.".to_owned());
        }
        lines.push(format!("#{} = {}", key.name, (key.write)(&defaults)));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Every key with its value, as a file.
#[cfg(feature = "fuzzing")]
pub(super) fn written<S>(keys: &[Key<S>], settings: &S) -> String {
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

/// Every line as a comment.
pub(super) fn commented(words: &str) -> Vec<String> {
    words.lines().map(|line| format!("# {line}")).collect()
}

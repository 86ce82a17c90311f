//! Templates for new containers in the owner's settings.

use std::fmt;
use std::str::FromStr;

/// The maximum length of an entry. A longer one is rejected.
const MAX_BYTES: usize = 512;

/// An LXC template under a name that the owner chose, with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerTemplate {
    name: String,
    program: String,
    options: Vec<String>,
}

impl ContainerTemplate {
    /// Returns an LXC template under its own name.
    pub fn of_lxc(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Returns the name that clients use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name in LXC.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns the template's options.
    pub fn options(&self) -> &[String] {
        &self.options
    }
}

/// The error for a text that is not a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidContainerTemplate;

impl FromStr for ContainerTemplate {
    type Err = InvalidContainerTemplate;

    /// Parses `NAME`, or `NAME: TEMPLATE OPTION...`.
    fn from_str(text: &str) -> Result<Self, InvalidContainerTemplate> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name.trim(), rest),
            None => (text, text),
        };
        // Rejects characters with a special meaning in the quotes of the file or in a shell.
        let plain = |c: char| c.is_ascii_graphic() && !"\"'\\$`".contains(c);
        let mut words = rest.split_whitespace().map(str::to_owned);
        let program = words.next().ok_or(InvalidContainerTemplate)?;
        let options: Vec<String> = words.collect();
        let good = text.len() <= MAX_BYTES
            && is_name(name)
            && is_name(&program)
            && options.iter().all(|option| option.chars().all(plain));
        let name = name.to_owned();
        let template = Self {
            name,
            program,
            options,
        };
        good.then_some(template).ok_or(InvalidContainerTemplate)
    }
}

/// Returns whether this is a valid name: never an option, never a path.
fn is_name(text: &str) -> bool {
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    begins_well && text.len() <= 64 && text.bytes().all(plain)
}

impl fmt::Display for ContainerTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.name != self.program || !self.options.is_empty() {
            write!(f, ": {}", self.program)?;
        }
        for option in &self.options {
            write!(f, " {option}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_a_name_and_what_it_stands_for() {
        let read = |text: &str| text.parse::<ContainerTemplate>();
        let plain = read("busybox").unwrap();
        assert_eq!((plain.name(), plain.program()), ("busybox", "busybox"));
        let debian = read("debian: download -d debian -r trixie").unwrap();
        assert_eq!((debian.name(), debian.program()), ("debian", "download"));
        assert_eq!(debian.options(), ["-d", "debian", "-r", "trixie"]);
        for template in [plain, debian] {
            assert_eq!(read(&template.to_string()), Ok(template));
        }
        for bad in [
            "",
            ":",
            "a:",
            "-x",
            "a: /bin/sh",
            "a: ../x",
            "a b",
            "a: b \"c\"",
            "a: b $(id)",
            "a\nb",
        ] {
            assert_eq!(read(bad), Err(InvalidContainerTemplate), "{bad:?}");
        }
    }
}

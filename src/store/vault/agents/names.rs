//! The names of agents: which texts can be one, and how one is made of any text.
//!
//! A name is typed in a shell, so it needs no quoting there.

use std::fmt;

use gatewren_base::config::Preset;
use gatewren_base::sys::{now_ms, plain_line};

/// The longest name.
const MAX_BYTES: usize = 63;

/// The longest name that [`free_name`] makes of a text, so that a number fits behind it.
const MAX_MADE: usize = 56;

/// The prefix of every id; a name with it could be taken for one.
const ID_PREFIX: &str = "agent_";

/// The longest part of a rejected name that an error repeats.
const MAX_SHOWN: usize = 64;

const DAY_MS: u64 = 86_400_000;

/// The agent that has a name which was wanted for another one.
#[derive(Debug)]
pub struct NameHolder {
    /// The name.
    pub name: String,
    /// The preset of its policy.
    pub preset: Preset,
    /// Whether its token has expired.
    pub expired: bool,
    /// When it last sent a request, in milliseconds since 1970.
    pub last_used_ms: Option<u64>,
}

impl fmt::Display for NameHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, preset, .. } = self;
        write!(f, "there is already an agent \"{name}\" ({preset}, ")?;
        // The command is at the end, so that the command line can add its options.
        if self.expired {
            return write!(
                f,
                "expired). To use its name again: gatewren agent revoke {name}"
            );
        }
        // By the days of UTC.
        let today = now_ms() / DAY_MS;
        match self
            .last_used_ms
            .map(|ms| today.saturating_sub(ms / DAY_MS))
        {
            None => f.write_str("never used")?,
            Some(0) => f.write_str("last used today")?,
            Some(1) => f.write_str("last used yesterday")?,
            Some(days) => write!(f, "last used {days} days ago")?,
        }
        write!(f, "). New token for it: gatewren agent rotate {name}")
    }
}

/// Writes the error for a text that cannot be the name of a new agent.
pub(in crate::vault) fn write_unfit(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    write!(
        f,
        "\"{}\" cannot be the name of an agent: use 1 to 63 of a-z, 0-9, dot, underscore and hyphen, with a letter or \
         digit first, and not agent_; for example {}",
        plain_line(name, MAX_SHOWN),
        made_of(name)
    )
}

/// Returns whether a text can be the name of a new agent: `[a-z0-9][a-z0-9._-]{0,62}`, and not like an id.
pub(super) fn is_fit(name: &str) -> bool {
    name.len() <= MAX_BYTES
        && name.starts_with(is_plain)
        && name.chars().all(|c| is_plain(c) || "._-".contains(c))
        && !name.starts_with(ID_PREFIX)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

/// Makes a name of any text, such as the one that a program has for itself.
fn made_of(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars().flat_map(char::to_lowercase) {
        if name.len() >= MAX_MADE {
            break;
        }
        if is_plain(letter) || "._".contains(letter) {
            name.push(letter);
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_matches(|c| !is_plain(c));
    match name.strip_prefix(ID_PREFIX) {
        Some(rest) => format!("agent-{rest}"),
        None if name.is_empty() => "agent".to_owned(),
        None => name.to_owned(),
    }
}

/// Makes a name of any text that is not taken; it ends with a number if the first one is.
pub(super) fn free_name(text: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let name = made_of(text);
    let mut free = name.clone();
    let mut number = 1_u32;
    while is_taken(&free) {
        number += 1;
        free = format!("{name}-{number}");
    }
    free
}

#[cfg(test)]
mod tests {
    use super::super::names::*;

    #[test]
    fn a_name_is_typed_without_quotes_and_not_taken_for_anything_else() {
        for good in ["claude", "mac-mini", "n8n", "9", "a._-", &"x".repeat(63)] {
            assert!(is_fit(good), "{good}");
        }
        for bad in [
            "",
            " x",
            "x ",
            "a b",
            "a\nb",
            "Mac",
            "ännä",
            "-x",
            ".x",
            "_x",
            "*",
            "x/y",
            "x'",
            "$x",
            "agent_1",
            "\u{1b}[31m",
            &"x".repeat(64),
        ] {
            assert!(!is_fit(bad), "{bad:?}");
        }
    }

    #[test]
    fn any_text_makes_a_name_that_is_free() {
        for (text, made) in [
            ("Claude Code", "claude-code"),
            ("  ChatGPT (beta)!", "chatgpt-beta"),
            ("app.example.com", "app.example.com"),
            ("agent_0123", "agent-0123"),
            ("Ännä", "nn"),
            ("日本", "agent"),
            ("", "agent"),
        ] {
            assert_eq!(free_name(text, |_| false), made);
            assert!(is_fit(made), "{made}");
        }
        let long = free_name(&"Ab ".repeat(100), |name| !name.ends_with("-1000"));
        assert!(is_fit(&long), "{long}");
        let taken = ["claude", "claude-2"];
        assert_eq!(
            free_name("Claude", |name| taken.contains(&name)),
            "claude-3"
        );
    }
}

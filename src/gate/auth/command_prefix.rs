//! The prefix of the commands that a grant allows, like sudoers(5) allows a command with arguments.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

/// The maximum length of a prefix in bytes.
const MAX_BYTES: usize = 256;

/// The arguments that a granted call may have. The container is the grant's target, and a timeout does not change
/// what runs. With any other argument, such as `env` or `user`, the grant does not apply.
const HARMLESS: [&str; 3] = ["command", "container", "timeout_s"];

/// The first whole words of a command, such as `systemctl status`.
///
/// The rest of the command may be any words of letters, digits and `. _ / : = @ % + , -`. A command with another
/// character is not covered, because a shell interprets most of them: `; & | $ ( ) < >`, quotes, globs, a line
/// feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPrefix(String);

impl CommandPrefix {
    /// Returns whether a call with these arguments runs a command with this prefix.
    pub fn covers(&self, arguments: &Map<String, Value>) -> bool {
        let others = arguments
            .keys()
            .any(|name| !HARMLESS.contains(&name.as_str()));
        let Some(Value::String(command)) = arguments.get("command") else {
            return false;
        };
        if others || !command.chars().all(is_plain) {
            return false;
        }
        let mut words = command.split(' ').filter(|word| !word.is_empty());
        // Leading blanks are skipped, as `bash` and `sh` do.
        self.0.split(' ').all(|word| words.next() == Some(word))
    }

    /// Returns the words, separated by single blanks.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CommandPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        let first = words.first().copied().unwrap_or_default();
        if first.is_empty() || text.len() > MAX_BYTES || !text.chars().all(is_plain) {
            return Err(format!(
                "invalid command prefix {text:?}: use 1 to {MAX_BYTES} bytes of words separated by blanks, of \
                 letters, digits and ._/:=@%+,- only"
            ));
        }
        // The shell would set a variable and run the next word as the command.
        if first.contains('=') {
            return Err(format!(
                "a command prefix must begin with a command, but {first:?} sets a variable"
            ));
        }
        Ok(Self(words.join(" ")))
    }
}

impl fmt::Display for CommandPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether a shell treats the character literally at any position of a command.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || " ._/:=@%+,-".contains(c)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Characters and words with which a shell may end the command, start a second one, or expand a word.
    #[rustfmt::skip]
    const EVASIONS: &[&str] = &[
        ";id", "; id", "&& id", "& id", "| sh", "|sh", "`id`", "$(id)", "${IFS}id", "$X", "> /etc/passwd", "< /etc/shadow",
        ">(id)", "(id)", "{id,}", "\nid", "\rid", "\n\nid", "\\\nid", "\\;id", "'", "\"", "'a' ; id", "\tid", "*", "?", "[a]",
        "~root", "#x", "!x", "^a^b", "\0", "\u{a0}id", "\u{2028}id", "\u{200b}", "\u{ff1b}id", "é",
    ];

    fn covers(prefix: &str, arguments: &Value) -> bool {
        let prefix: CommandPrefix = prefix.parse().unwrap();
        prefix.covers(arguments.as_object().unwrap())
    }

    #[test]
    fn a_command_is_covered_by_the_whole_words_that_it_begins_with() {
        for command in [
            "systemctl status",
            "systemctl status nginx",
            "systemctl  status -l a@b.service",
        ] {
            assert!(
                covers("systemctl status", &json!({ "command": command })),
                "{command}"
            );
        }
        let call = json!({ "command": "df -h /srv", "timeout_s": 5, "container": "web" });
        assert!(covers(" df  -h ", &call));
    }

    #[test]
    fn a_shell_finds_no_second_command_behind_a_prefix() {
        for rest in EVASIONS {
            for command in [
                format!("uptime{rest}"),
                format!("uptime {rest}"),
                format!("uptime -p {rest}"),
            ] {
                assert!(
                    !covers("uptime", &json!({ "command": command })),
                    "{command:?}"
                );
            }
        }
        for command in [
            "rm -rf /",
            "",
            " ",
            "uptimes",
            "up time",
            "/bin/uptime",
            "A=1 uptime",
            "Uptime",
        ] {
            assert!(
                !covers("uptime", &json!({ "command": command })),
                "{command:?}"
            );
        }
    }

    #[test]
    fn what_else_could_change_the_command_is_not_covered() {
        for more in [
            json!({ "env": { "PATH": "/tmp" } }),
            json!({ "env": {} }),
            json!({ "user": "root" }),
            json!({ "cwd": "/tmp" }),
            json!({ "argv": ["rm"] }),
            json!({ "command": ["uptime"] }),
            json!({ "command": null }),
        ] {
            let mut call = json!({ "command": "uptime" });
            call.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            assert!(!covers("uptime", &call), "{call}");
        }
        assert!(!covers("uptime", &json!({ "argv": ["uptime"] })));
    }

    #[test]
    fn a_prefix_is_words_and_nothing_for_a_shell() {
        for bad in [
            "",
            "  ",
            "a;b",
            "a|b",
            "$X",
            "a\nb",
            "LD_PRELOAD=/x uptime",
            "'a'",
            "a*",
            &"x".repeat(257),
        ] {
            assert!(bad.parse::<CommandPrefix>().is_err(), "{bad:?}");
        }
    }
}

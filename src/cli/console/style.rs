//! Text for a person at a terminal: colors, bold text, and paths as a shell takes them.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use gatewren_base::sys::wants_color;

/// How a piece of text looks on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Stands out.
    Bold,
    /// It works: green.
    Good,
    /// It needs attention: yellow.
    Warning,
    /// It does not work: red.
    Problem,
}

impl Style {
    /// The parameter of the control sequence (ECMA-48, SGR).
    fn parameter(self) -> u8 {
        match self {
            Self::Bold => 1,
            Self::Good => 32,
            Self::Warning => 33,
            Self::Problem => 31,
        }
    }

    /// The style of a word about how something is.
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "ok" | "active" | "done" | "applied" | "running" => Some(Self::Good),
            "warning" | "pending" | "approved" | "paused" | "expired" => Some(Self::Warning),
            "problem" | "failed" | "failing" | "fired" | "killed" | "lost" | "revoked" => {
                Some(Self::Problem)
            }
            _ => None,
        }
    }

    /// Returns the text in this style if standard output shows it, else the text as it is.
    pub fn paint(self, text: &str) -> String {
        if wants_color(&io::stdout()) {
            format!("\x1b[{}m{text}\x1b[0m", self.parameter())
        } else {
            text.to_owned()
        }
    }
}

/// Whether a person reads standard output.
pub fn is_read_by_person() -> bool {
    io::stdout().is_terminal()
}

/// Returns a path as a word of a shell's command line, with `~` for the home directory.
pub fn shell_path(path: &Path) -> String {
    let is_plain = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c))
    };
    let text = path.to_string_lossy();
    let home = std::env::var_os("HOME").filter(|home| home.len() > 1);
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    match below.map(Path::to_string_lossy) {
        Some(below) if is_plain(&below) => format!("~/{below}"),
        _ if is_plain(&text) => text.into_owned(),
        _ => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        for (path, word) in [
            ("/srv/gate-wren_1.0", "/srv/gate-wren_1.0"),
            ("/srv/it's here", r"'/srv/it'\''s here'"),
            ("/srv/$(reboot)", "'/srv/$(reboot)'"),
        ] {
            assert_eq!(shell_path(Path::new(path)), word);
        }
        let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
        let home = home.filter(|home| home.is_absolute() && home.as_os_str().len() > 1);
        let home = home.expect("tests have a home directory");
        assert_eq!(shell_path(&home.join("a/b")), "~/a/b");
        assert!(shell_path(&home.join("a b")).starts_with('\''));
    }
}

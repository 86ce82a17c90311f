//! One login, whatever recorded it.

use schemars::JsonSchema;
use serde::Serialize;

use gatewren_base::sys::neutralise;

/// The longest name, address or terminal that is shown, in characters; records may hold anything.
const WORD_CHARS: usize = 80;

/// What was logged in to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoginKind {
    /// A login over SSH.
    Ssh,
    /// A login at a terminal, such as the console.
    Console,
    /// A command as another user through sudo.
    Sudo,
    /// Another user's shell through su.
    Su,
    /// A sign-in at the owner's page.
    OwnerPage,
    /// The use of this server by an agent.
    Agent,
}

/// A login, or a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginEvent {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What was logged in to.
    pub kind: LoginKind,
    /// The user; for an agent its name.
    pub user: String,
    /// The address that it came from.
    pub from: Option<String>,
    /// The terminal.
    pub terminal: Option<String>,
    /// How the user proved who they are, such as `publickey` or `password`.
    pub method: Option<String>,
    /// The user that sudo or su switched to.
    pub as_user: Option<String>,
    /// Whether it succeeded.
    pub success: bool,
    /// How many attempts this is; more than one only for messages that syslog repeats.
    pub count: u64,
    /// The process that recorded it.
    pub pid: Option<u32>,
}

impl LoginEvent {
    /// An event with these facts and no others. The user's name is any text.
    pub fn new(at_ms: u64, kind: LoginKind, user: &str, success: bool) -> Self {
        Self {
            at_ms,
            kind,
            user: word(user),
            from: None,
            terminal: None,
            method: None,
            as_user: None,
            success,
            count: 1,
            pid: None,
        }
    }

    /// Adds the address.
    #[must_use]
    pub fn from(mut self, address: &str) -> Self {
        self.from = some_word(address);
        self
    }

    /// Adds the terminal.
    #[must_use]
    pub fn on(mut self, terminal: &str) -> Self {
        self.terminal = some_word(terminal);
        self
    }

    /// Adds the method.
    #[must_use]
    pub fn by(mut self, method: &str) -> Self {
        self.method = some_word(method);
        self
    }

    /// Adds the user that was switched to.
    #[must_use]
    pub fn switching_to(mut self, user: &str) -> Self {
        self.as_user = some_word(user);
        self
    }
}

/// Text of a record: short, and without control characters.
fn word(text: &str) -> String {
    let short: String = text.trim().chars().take(WORD_CHARS).collect();
    neutralise(&short).into_owned()
}

fn some_word(text: &str) -> Option<String> {
    Some(word(text)).filter(|word| !word.is_empty())
}

//! A step of setting up a client.

/// A step of the person who connects a client.
#[derive(Debug, PartialEq, Eq)]
pub struct SetupStep {
    /// What kind of step it is.
    pub kind: StepKind,
    /// What to do. It ends with a colon if there is something to paste.
    pub words: String,
    /// The text to paste or run, or the link to open; empty if there is none. The step `Paste` leaves it to the
    /// snippet.
    pub code: String,
}

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// A preparation, or an addition.
    Prepare,
    /// Save the authority's certificate.
    Save,
    /// Trust it in the client's own settings.
    Settings,
    /// Paste the snippet.
    Paste,
    /// Open a link instead.
    Link,
    /// See that it worked.
    Check,
}

impl StepKind {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepare | Self::Save | Self::Settings => "prepare",
            Self::Paste => "paste",
            Self::Link => "link",
            Self::Check => "check",
        }
    }
}

impl SetupStep {
    /// A step; its words end with a stop, or with a colon before the code.
    pub(super) fn new(kind: StepKind, words: &str, code: String) -> Self {
        let end = match (words.ends_with('.'), code.is_empty()) {
            (true, _) => "",
            (false, true) if kind != StepKind::Paste => ".",
            (false, _) => ":",
        };
        let words = format!("{words}{end}");
        Self { kind, words, code }
    }

    /// A preparation.
    pub(super) fn prepare(words: &str, code: String) -> Self {
        Self::new(StepKind::Prepare, words, code)
    }
}

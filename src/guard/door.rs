//! What a caller must show at a path.

/// A door; each path of the front has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Nothing.
    Open,
    /// An agent's token.
    Agent,
    /// The token of the metrics, or that of an agent that may see everything.
    Metrics,
    /// A token that a program was given over OAuth for this very path.
    Connect,
    /// The owner's cookie; whoever has none is shown the way to it.
    Consent,
    /// The owner's cookie; a page says what to do without one.
    Owner,
}

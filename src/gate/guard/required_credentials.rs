//! The credentials that a path requires.

/// The credentials that a path requires; every path of the front has one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredCredentials {
    /// None.
    Open,
    /// An agent's token.
    Agent,
    /// The token of the metrics, or that of an agent that may see everything.
    Metrics,
    /// A token that was issued to a program over OAuth for exactly this path.
    Connect,
    /// The owner's cookie; other visitors are redirected to the sign-in.
    Consent,
    /// The owner's cookie; the page itself handles visitors without one.
    Owner,
}

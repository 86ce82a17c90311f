//! The texts of the authorization server's pages, in one place.

use gatewren_base::config::Preset;

pub const ASKS: &str = "A program asks for access";
pub const ONLY_YOURS: &str = "Approve only if you have just started this connection yourself.";
pub const CALLS_ITSELF: &str = "Name";
pub const WHO_SAYS_SO: &str = "Verified by";
pub const A_SERVER: &str = "the server";
pub const BY_ITS_DOCUMENT: &str = ", in the document";
pub const ITSELF_ALONE: &str = "not verified: any program could use this name";
pub const ANSWER_TO: &str = "The answer goes to";
pub const THIS_COMPUTER: &str = "That is the computer in front of you. Any program that runs there and waits for the answer can receive it.";
pub const CALL_IT: &str = "Name of the agent";
pub const IT_MAY: &str = "Policy";
pub const IN_SPACE: &str = "Space";
pub const WHOLE_SERVER: &str = "the whole server";
pub const NO_SPACE: &str = "no space";
pub const BECOMES_AGENT: &str =
    "It becomes an agent, which you can view, change and revoke like any other:";
pub const AGENTS: &str = "Agents";
pub const APPROVE: &str = "Approve";
pub const REFUSE: &str = "Refuse";
pub const LET_IN_BEFORE: &str =
    "You approved this program before. It will act as the same agent again:";
pub const POLICY: &str = "policy";
pub const WITH_CHANGES: &str = ", with your changes";
pub const IN: &str = "in";
pub const CANNOT: &str = "This request was refused";
pub const NOTHING_GIVEN: &str = "No access was granted. You can close this page.";
pub const TOO_LONG: &str = "the request is too long";
pub const CONFIRM: &str = "Type your password again";
pub const CONFIRM_WHY: &str = "You are about to give a program access, and you last typed your password more than 10 minutes ago. Type it again.";
pub const PASSWORD: &str = "Password";
pub const ONE_MOMENT: &str = "One moment";
pub const GO_ON: &str = "Continue";

/// What an agent with this preset may do.
pub fn preset(preset: Preset) -> &'static str {
    match preset {
        Preset::Observe => "read, and change nothing",
        Preset::Suggest => "read, and propose changes for your decision",
        Preset::Operate => "make reversible changes, and propose the rest",
        Preset::Admin => "do everything; the most dangerous calls only after confirmation",
    }
}

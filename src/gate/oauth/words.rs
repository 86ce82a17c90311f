//! The texts of the authorization server's pages, in one place.

use gatewren_base::config::Preset;

pub const ASKS: &str = "A program asks for access";
pub const ONLY_YOURS: &str = "Approve only what you have just begun yourself.";
pub const CALLS_ITSELF: &str = "It calls itself";
pub const WHO_SAYS_SO: &str = "Who says so";
pub const A_SERVER: &str = "the server";
pub const BY_ITS_DOCUMENT: &str = ", by the document";
pub const ITSELF_ALONE: &str = "the program alone: any other could call itself the same";
pub const ANSWER_TO: &str = "The answer goes to";
pub const THIS_COMPUTER: &str = "That is the computer in front of you. Whatever program runs there and waits for the answer gets it.";
pub const CALL_IT: &str = "Call it";
pub const IT_MAY: &str = "It may";
pub const IN_SPACE: &str = "In the space";
pub const WHOLE_BOX: &str = "the whole box";
pub const NO_SPACE: &str = "no space";
pub const BECOMES_AGENT: &str =
    "It becomes an agent, which you can look at, change and end like others:";
pub const AGENTS: &str = "Agents";
pub const APPROVE: &str = "Approve";
pub const REFUSE: &str = "Refuse";
pub const LET_IN_BEFORE: &str = "You let this program in before. It will be the same agent again:";
pub const POLICY: &str = "policy";
pub const WITH_CHANGES: &str = ", with changes of yours";
pub const IN: &str = "in";
pub const CANNOT: &str = "This request cannot be answered";
pub const NOTHING_GIVEN: &str = "Nothing was given to anybody. You can close this page.";
pub const TOO_LONG: &str = "the request is too long";
pub const CONFIRM: &str = "Type your password again";
pub const CONFIRM_WHY: &str = "You are about to let a program in, and you typed your password more than 10 minutes ago. It is needed once more.";
pub const PASSWORD: &str = "Password";
pub const ONE_MOMENT: &str = "One moment";
pub const GO_ON: &str = "Go on";

/// What an agent with this preset may do.
pub fn preset(preset: Preset) -> &'static str {
    match preset {
        Preset::Observe => "see, and change nothing",
        Preset::Suggest => "see, and propose changes that you decide on",
        Preset::Operate => "change what can be changed back, and propose the rest",
        Preset::Admin => "do everything; the gravest only when it is confirmed",
    }
}

//! All texts of the pages.

use gatewren_base::config::{Mode, Preset, Risk};

// Navigation and errors.
pub const SKIP: &str = "Skip to the content";
pub const NAVIGATION: &str = "Pages";
pub const INBOX: &str = "Inbox";
pub const BOX: &str = "Box";
pub const AGENTS: &str = "Agents";
pub const AUDIT: &str = "Audit";
pub const CONNECT: &str = "Connect";
pub const LOGINS: &str = "Sign-ins";
pub const TROUBLE: &str = "That did not work";
pub const TO_INBOX: &str = "To the inbox";
pub const AGAIN: &str = "To the start";
pub const SIGNED_OUT: &str = "You are not signed in.";
pub const ABSENT: &str = "There is no such thing here, or no longer.";
pub const UNAVAILABLE: &str =
    "That cannot be known at the moment. The log of gatewren says why; try again soon.";
pub const NO_SUCH_DEED: &str =
    "This form asks for nothing that is known here. Load the page again.";
pub const TOO_MANY_READERS: &str =
    "Too many pages are open; this one shows news when it is loaded again.";

// Signing in.
pub const GO_ON: &str = "Go on";
pub const SIGN_IN: &str = "Sign in";
pub const SET_UP: &str = "Set the owner's password";
pub const SET_UP_HOW: &str =
    "The code shows that you may open this box. It is good once, for a day. On the box, run:";
pub const CODE: &str = "One-time code";
pub const PASSWORD: &str = "The owner's password";
pub const NEW_PASSWORD: &str = "New password, 10 characters or more";
pub const ONCE_MORE: &str = "The same once more";
pub const SET_IT: &str = "Set the password";
pub const TWO_PASSWORDS: &str = "These were two different passwords; nothing was set.";
pub const FORGOTTEN: &str =
    "Forgotten? Root sets a new one on the box: sudo gatewren owner set-password";
pub const SIGN_OUT: &str = "Sign out";
pub const SIGN_OUT_EVERYWHERE: &str = "Sign the owner out everywhere";
pub const THIS_ONE: &str = "this one";
pub const OWNER: &str = "owner";
pub const FORMER_AGENT: &str = "an agent with another token now";

// The inbox.
pub const NOTHING_WAITS: &str = "Nothing waits for you.";
pub const MOVED: &str = "its target has moved";
pub const ALL_OF: &str = "All that waits of";
pub const ALL_OF_HOW: &str = "Approving runs the changes of this agent that this page shows in full, in the order in which they were proposed. If anything of this agent has changed since, nothing is approved and the page is shown again. Rejecting decides on all that waits of it, on every page.";
pub const TOO_LONG: &str =
    "It is too long to be shown here in full. Read and approve it on its own page.";
pub const CHARACTERS: &str = "characters";
pub const LINES: &str = "lines";
pub const PREVIOUS: &str = "Previous page";
pub const NEXT: &str = "Next page";
pub const PAGE: &str = "Page";
pub const PAGE_OF: &str = "of";
pub const AS_TEXT: &str = "text";
pub const AS_JSON: &str = "JSON";
pub const APPROVE_ALL: &str = "Approve all";
pub const REJECT_ALL: &str = "Reject all";
pub const GRANTS: &str = "Allowed for a while";
pub const UNTIL: &str = "until";
pub const END_GRANT: &str = "End it";
pub const ENDED: &str = "Decided or over";
pub const WHEN: &str = "When";
pub const AGENT: &str = "Agent";
pub const TOOL: &str = "Tool";
pub const TARGET: &str = "Target";
pub const OUTCOME: &str = "Outcome";
pub const REASON: &str = "The reason, in the agent's own words:";
pub const RESTS_ON_NOTHING: &str =
    "What this does may be about anything, so nothing is watched for it.";
pub const HAS_NOT_MOVED: &str = "What it is about has not moved since it was proposed.";
pub const HAS_MOVED: &str = "What it is about has moved since it was proposed:";
pub const MAY_HAVE_MOVED: &str = "Whether what it is about has moved is not known.";
pub const REVISION: &str = "revision";
pub const PROPOSED_AT: &str = "proposed at revision";
pub const WOULD_DO: &str = "What it would do";
pub const NO_ARGUMENTS: &str = "It has no arguments.";
pub const IS_SO: &str = "as it is now";
pub const AS_IT_IS: &str = "As it is now:";
pub const EXACT: &str = "The exact arguments";
pub const ALTERED: &str = "The arguments are not those that were proposed: it cannot be approved.";
pub const DECIDE: &str = "Decide";
pub const APPROVE: &str = "Approve";
pub const REJECT: &str = "Reject";
pub const NOTE: &str = "Note, which the agent can read";
pub const GRANT_FOR: &str = "For";
pub const APPROVE_AND_GRANT: &str = "Approve, and allow the same";
pub const GRANT_HOW: &str = "Allowing lets this agent make these calls without asking, until the time is over or you end it. A command prefix is whole words; a command with characters that a shell interprets is always asked about.";
pub const GRANT_WHAT: &str = "Allow";
pub const GRANT_EXACT: &str = "exactly this call";
pub const GRANT_PREFIX: &str = "commands that begin with these words";
pub const GRANT_WORDS: &str = "Command prefix";
pub const SURE: &str = "Allow every call?";
pub const SURE_FOR: &str = "for";
pub const SURE_AGENT: &str = "You are about to allow this to";
pub const SURE_HOW: &str =
    "Nothing of it will be shown to you before it runs. The change itself is approved as well.";
pub const SURE_YES: &str = "Approve, and allow all of it";
pub const SURE_NO: &str = "Back to the change";
pub const HISTORY: &str = "History";
pub const ID: &str = "Id";
pub const SPACE: &str = "Space";
pub const PROPOSED: &str = "Proposed";
pub const EXPIRES: &str = "Expires";
pub const DECIDED: &str = "Decided";
pub const PROPOSAL: &str = "Proposal";
pub const RUN: &str = "Run";
pub const IN_THE_AUDIT: &str = "in the audit";
pub const RESULT: &str = "Result, as the tool answered";
pub const LONG_NOTE: &str = "The note is longer than 500 bytes.";
pub const CHANGED_SINCE: &str =
    "This change is no longer the one that the page showed. Look at it again.";

/// The durations of a grant: form value and label.
pub const SPANS: [(&str, &str); 4] = [
    ("1h", "1 hour"),
    ("4h", "4 hours"),
    ("1d", "1 day"),
    ("7d", "7 days"),
];

/// The confirmations of the previous action.
pub const SAID: [(&str, &str); 10] = [
    (
        "not-as-shown",
        "Nothing was approved: what waits of this agent is no longer what the page showed. This is what waits now.",
    ),
    ("approved", "Approved. It runs once, just as it was shown."),
    ("rejected", "Rejected. It does not run."),
    (
        "all-approved",
        "Approved. They run once each, just as they were shown.",
    ),
    ("all-rejected", "Rejected. They do not run."),
    ("grant-ended", "This is no longer allowed without asking."),
    (
        "revoked",
        "The agent is revoked, and what it had open has ended.",
    ),
    ("edited", "Saved. It holds from the agent's next call on."),
    ("unchanged", "It is so already; nothing was changed."),
    ("signed-out", "Signed out."),
];

// The host.
pub const HOST: &str = "Host";
pub const SYSTEM: &str = "System";
pub const VERSION: &str = "Version";
pub const KERNEL: &str = "Kernel";
pub const ARCHITECTURE: &str = "Architecture";
pub const CONTAINERS: &str = "Containers";
pub const NO_CONTAINERS: &str = "There are no containers, or none that can be seen.";
pub const NO_SAMPLES: &str = "There is nothing to draw yet; it is measured once a minute.";
pub const CPU: &str = "CPU";
pub const MEMORY: &str = "Memory";
pub const DISK: &str = "Fullest disk";
pub const RECEIVED: &str = "Received";
pub const SENT: &str = "Sent";
pub const LATELY: &str = "What changed lately";
pub const NOTHING_LATELY: &str = "Nothing has changed that is kept in the log.";
pub const WHAT: &str = "What";
pub const WHO: &str = "Who";
pub const THE_CALL: &str = "the call";

// Agents.
pub const NO_AGENTS: &str = "There are no agents yet. Each AI client gets one of its own.";
pub const NEW_AGENT: &str = "A new agent";
pub const ADD_AGENT: &str = "Add it and show its token";
pub const REVOKED_AGENTS: &str = "Revoked";
pub const NAME: &str = "Name";
pub const POLICY: &str = "Policy";
pub const STATE: &str = "State";
pub const LAST_USED: &str = "Last used";
pub const NEVER: &str = "never";
pub const NO_END: &str = "no end";
pub const ADDED: &str = "Added";
pub const REVOKED: &str = "Revoked";
pub const REVOKED_ALREADY: &str = "This agent was revoked; add a new one.";
pub const EXPIRES_EXAMPLE: &str = "365d";
pub const EXPIRES_NEVER: &str = "never";
pub const EXPIRES_HOW: &str =
    "After how long, such as 30d or 12h, the last day, such as 2027-01-31, or never.";
pub const EXPIRES_NEW: &str = "Empty: its token expires after a year.";
pub const EXPIRES_KEPT: &str = "Empty: as it is.";
pub const EXPIRES_SOON: &str = "Its token expires soon. To keep it, change when it expires below.";
pub const SOON: &str = "expires soon";
pub const VALID_UNTIL: &str = "Valid until";
pub const DIFFERS: &str = "What differs from the policy";
pub const CLASSES: &str = "Classes of tools";
pub const AS_POLICY_SAYS: &str = "as the policy says";
pub const CHOOSE: &str = "choose one";
pub const CHOOSE_POLICY: &str = "Choose a policy: observe, suggest, operate or admin.";
pub const CHOOSE_MODE: &str = "Choose a mode: allow, confirm, confirm-owner, propose or deny.";
pub const WHOLE_BOX: &str = "the whole box";
pub const NO_SUCH_SPACE: &str = "(the settings have no such space)";
pub const TOOLSETS: &str = "Toolsets";
pub const TOOLSETS_HOW: &str =
    "Only tools of these groups, with spaces between them. Empty: as the policy says.";
pub const CONTAINERS_HOW: &str =
    "Only containers that fit, such as arr-*. Empty: all of its space.";
pub const NETWORKS: &str = "Networks";
pub const NETWORKS_HOW: &str =
    "Only from these addresses, such as 192.168.1.0/24. Empty: from anywhere.";
pub const TOO_MANY_LISTED: &str = "A list has at most 64 entries.";
pub const AGENT_ADDED: &str = "Added. This is its token; it is not shown again.";
pub const TOKEN_ROTATED: &str =
    "The old token is good no more. This is the new one; it is not shown again.";
pub const TOKEN: &str = "Token";
pub const TOKEN_ONCE: &str = "Whoever has it comes in as this agent. Only its hash is kept here.";
pub const TOKEN_HOW: &str = "A new token ends the old one at once. Revoking ends the agent, with everything that it has open.";
pub const QR: &str = "The token as a QR code";
pub const COPY: &str = "Copy";
pub const COPIED: &str = "Copied";
pub const CLIENTS: &str = "Ready for your client";
pub const AUTHORITY_FIRST: &str = "The client must trust this box's certificate authority, saved on its machine as gatewren-ca.pem:";
pub const GOES_INTO: &str = "Goes into:";
pub const TO_AGENT: &str = "To the agent";
pub const PREVIEW: &str = "Preview";
pub const SAVE: &str = "Save";
pub const NOTHING_DIFFERS: &str = "Nothing would change.";
pub const SEES: &str = "What it sees";
pub const WOULD_SEE: &str = "What it would see";
pub const EDIT: &str = "Edit";
pub const ROTATE: &str = "New token";
pub const REVOKE: &str = "Revoke";
pub const NO_TOOLS: &str =
    "No tools exist for it, or the server was not started yet with this vault.";
pub const TOOLS_WHOSE_CALLS: &str = "tools whose calls";
pub const TOOLS_OFF: &str = "tools that are off on this box, by keys of helper.toml";
pub const TOOLS_HIDDEN: &str = "tools do not exist for it";
pub const LAST_CALLS: &str = "Its last calls";
pub const ALL_CALLS: &str = "All its calls";
pub const REFUSALS: &str = "Refused";

// The audit.
pub const DECISION: &str = "Decision";
pub const SINCE: &str = "Since";
pub const BEFORE: &str = "Before";
pub const SEARCH: &str = "Search";
pub const VERIFY: &str = "Verify the chain";
pub const EXPORT: &str = "Export all";
pub const MORE_CALLS: &str = "These are the newest; say before when to see earlier ones.";
pub const NO_CALLS: &str = "There are no such calls.";
pub const CHAIN_INTACT: &str = "Every row is as it was written. Rows:";
pub const CHAIN_TRIMMED: &str = "Trimmed before them:";
pub const CHAIN_BROKEN: &str = "The record is broken at row";
pub const EXACT_SEALED: &str = "Something was left out here. The exact arguments are sealed to the owner's key; on the box, this opens them:";
pub const EXACT_NONE: &str = "Something was left out here, and the exact arguments are not kept:";
pub const ROW: &str = "Row";
pub const REQUEST: &str = "Request";
pub const SESSION: &str = "Session";
pub const ADDRESS: &str = "Address";
pub const RISK: &str = "Risk";
pub const MODE: &str = "Mode";
pub const TOOK_MS: &str = "Took, in ms";
pub const BEGAN: &str = "Began";
pub const ENDED_AT: &str = "Ended";
pub const CHANGE: &str = "Change";
pub const ARGUMENTS: &str = "Arguments, without secrets";
pub const LARGE_EXPORT: &str =
    "The audit is too large for a browser; on the box, run: sudo gatewren audit export";

// Connecting.
pub const ADDRESS_OF_MCP: &str = "The address";
pub const TOKEN_FIRST: &str = "A client comes in with the token of an agent:";
pub const WITHOUT_TOKEN: &str = "A program that holds no token, such as a connector of a chat service, is given this address. It sends you here to decide:";
pub const OTHERS_VOUCH: &str = "The certificate is one that you have given; nothing has to be trusted by hand if clients know who signed it.";
pub const AUTHORITY: &str = "The certificate authority";
pub const AUTHORITY_WHY: &str = "This box has an authority of its own. It can vouch for the names of this box and for private addresses alone, never for a site of the world. Clients that trust it know that they speak with this box.";
pub const FINGERPRINT: &str = "Compare before you trust it. Its SHA-256 is:";
pub const FINGERPRINT_HOW: &str =
    "This page came over the same wire. What counts is what the box itself says:";
pub const PER_SYSTEM: &str = "Trust it, system by system";
pub const FETCH_FIRST: &str =
    "Fetch it, and compare the fingerprint with the one that the box says:";

pub const CONFIRM: &str = "Type your password again";
pub const CONFIRM_WHY: &str = "What you asked for gives access or widens it, and you typed your password more than 10 minutes ago. Once it is typed, what you asked for is done.";

/// A description of a policy preset.
pub fn preset(preset: Preset) -> &'static str {
    match preset {
        Preset::Observe => "sees; changes nothing",
        Preset::Suggest => "sees, and proposes changes that you decide on",
        Preset::Operate => "changes what can be changed back, and proposes the rest",
        Preset::Admin => "does everything; the gravest only when it is confirmed at the client",
    }
}

/// A description of a class of risk.
pub fn risk(risk: Risk) -> &'static str {
    match risk {
        Risk::Read => "looks",
        Risk::Scan => "sends packets to other machines or ports",
        Risk::Write => "changes what can be changed back",
        Risk::Disrupt => "stops, destroys or cuts access",
        Risk::Execute => "runs code",
        Risk::Reveal => "may show secrets",
        Risk::Persist => "creates lasting access, or writes what root may run",
    }
}

/// A description of a mode.
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Allow => "run",
        Mode::Confirm => "ask the person at the client",
        Mode::ConfirmOwner => "ask you, and wait for your decision where the client can",
        Mode::Propose => "wait in the inbox for you",
        Mode::Deny => "do not exist",
    }
}

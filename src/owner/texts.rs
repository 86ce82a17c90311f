//! All texts of the pages.

use gatewren_base::config::{Mode, Preset, Risk};

// Navigation and errors.
pub const JUST_NOW: &str = "just now";
pub const IN_A_MOMENT: &str = "in a moment";
pub const MINUTES: &str = "min";
pub const HOURS: &str = "h";
pub const ONE_DAY: &str = "1 day";
pub const DAYS: &str = "days";
pub const IN_FUTURE: &str = "in";
pub const AGO: &str = "ago";
pub const SKIP: &str = "Skip to the content";
pub const NAVIGATION: &str = "Pages";
pub const INBOX: &str = "Inbox";
pub const HOME: &str = "Home";
pub const AGENTS: &str = "Agents";
pub const ACTIVITY: &str = "Activity";
pub const SETTINGS: &str = "Settings";
pub const MENU: &str = "Menu";
pub const HELP: &str = "Help";
pub const THEME: &str = "Theme";
pub const THEME_SYSTEM: &str = "System";
pub const THEME_LIGHT: &str = "Light";
pub const THEME_DARK: &str = "Dark";
pub const DEMO: &str = "Demo: nothing here is real.";
pub const DEMO_MEANS: &str = "What you approve or start is not run.";
pub const ALL_WELL: &str = "All is well";
pub const ONE_WAITS: &str = "1 request waits for you";
pub const SOME_WAIT: &str = "requests wait for you";
pub const ONE_PROBLEM: &str = "1 problem";
pub const SOME_PROBLEMS: &str = "problems";
pub const IS_UNHEALTHY: &str = "is unhealthy";
pub const DISK_IS_FULL: &str = "The fullest disk is in use by";
pub const CONNECT_WHAT: &str =
    "The address for clients, and the certificate authority that they trust.";
pub const LOGINS_WHAT: &str = "Who is signed in; each can be signed out.";
pub const HELP_WHAT: &str = "Commands and manual pages.";
pub const HELP_HOW: &str = "Run these on the server:";
pub const HELP_COMMANDS: [(&str, &str); 3] = [
    ("Find problems and their remedies:", "sudo gatewren doctor"),
    (
        "Read about policies, approvals and jobs:",
        "man gatewren-guide",
    ),
    ("List all commands and their pages:", "man gatewren"),
];
pub const CONNECT: &str = "Connect";
pub const LOGINS: &str = "Sign-ins";
pub const TROUBLE: &str = "That did not work";
pub const TO_INBOX: &str = "To the inbox";
pub const AGAIN: &str = "To the start page";
pub const SIGNED_OUT: &str = "You are not signed in.";
pub const ABSENT: &str = "Not found: it does not exist, or no longer does.";
pub const UNAVAILABLE: &str =
    "This is not available at the moment. The reason is in gatewren's log; try again soon.";
pub const NO_SUCH_ACTION: &str = "This form requests an unknown action. Reload the page.";
pub const NEW_REQUEST: &str = "1 new request.";
pub const NEW_REQUESTS: &str = "new requests.";
pub const PAGE_CHANGED: &str = "This page has changed.";
pub const SHOW: &str = "Show";
pub const PAGE_LOST: &str = "The server cannot be reached. This page may be out of date.";
pub const PAGE_STALE: &str = "This page is no longer updated by itself. Reload it.";
pub const TOO_MANY_READERS: &str = "Too many pages are open; reload this one to see news.";

// Signing in.
pub const GO_ON: &str = "Continue";
pub const SIGN_IN: &str = "Sign in";
pub const SET_UP: &str = "Set the owner's password";
pub const SET_UP_HOW: &str = "The code proves that you own this server. It can be used once, within a day. To get it, run on the server:";
pub const CODE: &str = "One-time code";
pub const PASSWORD: &str = "The owner's password";
pub const NEW_PASSWORD: &str = "New password, 10 characters or more";
pub const ONCE_MORE: &str = "Repeat the password";
pub const SET_IT: &str = "Set the password";
pub const TWO_PASSWORDS: &str = "The two passwords differ; nothing was set.";
pub const FORGOTTEN: &str =
    "Forgotten? Root can set a new one on the server: sudo gatewren owner set-password";
pub const SIGN_OUT: &str = "Sign out";
pub const SIGN_OUT_EVERYWHERE: &str = "Sign the owner out everywhere";
pub const THIS_ONE: &str = "this one";
pub const OWNER: &str = "owner";
pub const FORMER_AGENT: &str = "an agent whose token was replaced";

// Watches.
pub const WATCHES: &str = "Watches of agents";
pub const WATCH_PHASE: &str = "State";
pub const WATCH_CONDITION: &str = "Condition";
pub const WATCH_SEEN: &str = "Last seen";

// The inbox.
pub const NOTHING_WAITS: &str = "No changes are pending.";
pub const MOVED: &str = "its target has changed";
pub const ALL_OF: &str = "Decide on several at once";
pub const ALL_OF_HOW: &str = "Approving runs the changes of this agent that this page shows in full, in the order in which they were proposed. If its pending changes have changed since, nothing is approved and the page is shown again. A request that loses data for good is approved by itself. Rejecting applies to all its pending changes, on every page.";
pub const TOO_LONG: &str =
    "It is too long to be shown here in full. Read and approve it on its own page.";
pub const CHARACTERS: &str = "characters";
pub const LINES: &str = "lines";
pub const PREVIOUS: &str = "Previous page";
pub const NEXT: &str = "Next page";
pub const PAGE: &str = "Page";
pub const PAGE_OF: &str = "of";
pub const AS_TEXT: &str = "text";
pub const AS_NUMBER: &str = "number";
pub const AS_JSON: &str = "JSON";
pub const APPROVE_ALL: &str = "Approve all";
pub const REJECT_ALL: &str = "Reject all";
pub const GRANTS: &str = "Temporary grants";
pub const UNTIL: &str = "until";
pub const END_GRANT: &str = "End it";
pub const ENDED: &str = "Decided or expired";
pub const WHEN: &str = "When";
pub const AGENT: &str = "Agent";
pub const TOOL: &str = "Tool";
pub const TARGET: &str = "Target";
pub const OUTCOME: &str = "Outcome";
pub const ERROR: &str = "Error";
pub const REASON: &str = "The reason, in the agent's own words:";
pub const RESTS_ON_NOTHING: &str = "This call may affect anything, so no target is watched for it.";
pub const HAS_NOT_MOVED: &str = "Its target has not changed since it was proposed.";
pub const HAS_MOVED: &str = "Its target has changed since it was proposed:";
pub const MAY_HAVE_MOVED: &str = "It is unknown whether its target has changed.";
pub const REVISION: &str = "revision";
pub const PROPOSED_AT: &str = "proposed at revision";
pub const WOULD_DO: &str = "Effect";
pub const NO_ARGUMENTS: &str = "It has no arguments.";
pub const IS_SO: &str = "as it is now";
pub const AS_IT_IS: &str = "As it is now:";
pub const EXACT: &str = "The exact arguments";
pub const ALTERED: &str =
    "The arguments differ from the proposed ones: the change cannot be approved.";
pub const DECIDE: &str = "Decide";
pub const APPROVE: &str = "Approve";
pub const REJECT: &str = "Reject";
pub const NOTE: &str = "Note, which the agent can read";
pub const GRANT_FOR: &str = "For";
pub const APPROVE_AND_GRANT: &str = "Approve, and allow the same";
pub const GRANT_HOW: &str = "A grant lets this agent make these calls without asking, until it expires or you end it. A command prefix consists of whole words; with a prefix, a command with characters that a shell interprets still needs approval.";
pub const GRANT_WHAT: &str = "Allow";
pub const GRANT_EXACT: &str = "exactly this call";
pub const GRANT_PREFIX: &str = "commands that begin with these words";
pub const GRANT_WORDS: &str = "Command prefix";
pub const SURE: &str = "Allow every call?";
pub const SURE_FOR: &str = "for";
pub const SURE_AGENT: &str = "You are about to allow this to";
pub const SURE_HOW: &str =
    "These calls are not shown to you before they run. The change itself is approved as well.";
pub const SURE_YES: &str = "Approve, and allow every call";
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
pub const RESULT: &str = "Result of the tool";
pub const LONG_NOTE: &str = "The note is longer than 500 bytes.";
pub const CHANGED_SINCE: &str =
    "This change differs from the one that the page showed. Check it again.";

/// The durations of a grant: form value and label.
pub const SPANS: [(&str, &str); 4] = [
    ("1h", "1 hour"),
    ("4h", "4 hours"),
    ("1d", "1 day"),
    ("7d", "7 days"),
];

/// The confirmations of the previous action.
pub const NOTICES: [(&str, &str); 20] = [
    (
        "not-as-shown",
        "Nothing was approved: the pending changes of this agent are not those that the page showed. These are pending now.",
    ),
    ("approved", "Approved. It runs once, exactly as shown."),
    ("rejected", "Rejected. It does not run."),
    (
        "all-approved",
        "Approved. Each runs once, exactly as shown.",
    ),
    ("all-rejected", "Rejected. They do not run."),
    ("grant-ended", "The grant has ended."),
    (
        "revoked",
        "The agent is revoked. Its sessions and streams end, and its pending changes are withdrawn.",
    ),
    ("edited", "Saved. It applies from the agent's next call."),
    ("unchanged", "Nothing differs, so nothing was changed."),
    ("signed-out", "Signed out."),
    ("start", "The container was started."),
    ("stop", "The container was stopped."),
    ("restart", "The container was restarted."),
    ("freeze", "The container was frozen."),
    ("unfreeze", "The container runs again."),
    ("seen", "The alerts are marked as seen."),
    ("device-added", "This device was added, and got a message."),
    ("channel-removed", "Removed."),
    ("test-sent", "The test was sent."),
    ("working", "It is still under way. Activity shows its end."),
];

// The host.
pub const HOST: &str = "Host";
pub const SYSTEM: &str = "System";
pub const VERSION: &str = "Version";
pub const KERNEL: &str = "Kernel";
pub const ARCHITECTURE: &str = "Architecture";
pub const CONTAINERS: &str = "Containers";
pub const NO_CONTAINERS: &str = "There are no containers, or none are visible.";
pub const STARTED: &str = "started";
pub const STOPPED: &str = "stopped";
pub const CHANGED: &str = "changed";
pub const IMAGE: &str = "image";
pub const COMPOSE_PROJECT: &str = "Compose project";
pub const SERVICE: &str = "service";
pub const STALE: &str = "last known state";
pub const EXIT_CODE: &str = "exit code";
pub const OUT_OF_MEMORY: &str = "killed because memory was used up";
pub const COUNTS_AS_HOST: &str = "Root in it is root on the host:";
pub const COUNTS_AS_LXC: &str = "Root in it is root in the container of LXC around it:";
pub const LATELY: &str = "Recent changes";
pub const CONTAINER: &str = "Container";
pub const UNIT: &str = "Unit";
pub const IS_NOW: &str = "is now";
pub const WAS_REMOVED: &str = "was removed";
pub const HAS_CHANGED: &str = "has changed";
pub const NOTHING_LATELY: &str = "The log contains no changes.";
pub const WHAT: &str = "What";
pub const WHO: &str = "Who";
pub const THE_CALL: &str = "the call";

// Agents.
pub const NO_AGENTS: &str = "There are no agents yet. Each AI client needs its own agent.";
pub const ADD_AGENT: &str = "Add it and show its token";
pub const REVOKED_AGENTS: &str = "Revoked";
pub const NAME: &str = "Name";
pub const NAME_HOW: &str =
    "Lowercase letters, digits, dots, underscores and hyphens. No two agents have the same name.";
pub const POLICY: &str = "Policy";
pub const STATE: &str = "State";
pub const LAST_USED: &str = "Last used";
pub const NEVER: &str = "never";
pub const NO_END: &str = "no end";
pub const ADDED: &str = "Added";
pub const REVOKED: &str = "Revoked";
pub const REVOKED_ALREADY: &str = "This agent is revoked; add a new one.";
pub const EXPIRES_EXAMPLE: &str = "365d";
pub const EXPIRES_NEVER: &str = "never";
pub const EXPIRES_HOW: &str =
    "A duration such as 30d or 12h, a last day such as 2027-01-31, or never.";
pub const EXPIRES_NEW: &str = "Empty: its token expires after a year.";
pub const EXPIRES_KEPT: &str = "Empty: unchanged.";
pub const EXPIRES_SOON: &str = "Its token expires soon. To keep it, change the expiry below.";
pub const SOON: &str = "expires soon";
pub const VALID_UNTIL: &str = "Valid until";
pub const DIFFERS: &str = "Differences from the policy";
pub const CLASSES: &str = "Classes of tools";
pub const CHOOSE: &str = "choose one";
pub const CHOOSE_POLICY: &str = "Choose a policy: observe, suggest, operate or admin.";
pub const CHOOSE_MODE: &str = "Choose a mode: allow, confirm, confirm-owner, propose or deny.";
pub const WHOLE_SERVER: &str = "the whole server";
pub const NO_SUCH_SPACE: &str = "(not in the settings)";
pub const TOOLSETS: &str = "Toolsets";
pub const TOOLSETS_HOW: &str =
    "Only tools of these toolsets, separated by spaces. Empty: default of the policy.";
pub const CONTAINERS_HOW: &str =
    "Only matching containers, such as arr-* or docker:arr-*. Empty: all of its space.";
pub const NETWORKS: &str = "Networks";
pub const NETWORKS_HOW: &str =
    "Only from these addresses, such as 192.168.1.0/24. Empty: from anywhere.";
pub const TOO_MANY_LISTED: &str = "A list has at most 64 entries.";
pub const AGENT_ADDED: &str = "Added. This is its token; it is not shown again.";
pub const TOKEN_ROTATED: &str =
    "The old token is revoked. This is the new one; it is not shown again.";
pub const TOKEN: &str = "Token";
pub const TOKEN_ONCE: &str =
    "Anyone with this token has this agent's access. Only its hash is stored here.";
pub const TOKEN_HOW: &str = "A new token revokes the old one at once. Revoking the agent ends its access, its sessions and its streams, and withdraws its pending changes.";
pub const QR: &str = "The token as a QR code";
pub const COPY: &str = "Copy";
pub const COPIED: &str = "Copied";
pub const CLIENTS: &str = "Configuration for your client";
pub const OPEN_CLIENT: &str = "Open";
pub const TO_AGENT: &str = "To the agent";
pub const PREVIEW: &str = "Preview";
pub const SAVE: &str = "Save";
pub const NOTHING_DIFFERS: &str = "Nothing would change.";
pub const SEES: &str = "Its tools";
pub const WOULD_SEE: &str = "Its tools after the change";
pub const EDIT: &str = "Edit";
pub const ROTATE: &str = "New token";
pub const REVOKE: &str = "Revoke";
pub const NO_TOOLS: &str = "It has no tools, or the server has not yet started with this vault.";
pub const TOOLS_WHOSE_CALLS: &str = "tools with calls that";
pub const TOOLS_OFF: &str = "tools that helper.toml disables on this server";
pub const TOOLS_HIDDEN: &str = "tools are hidden from it";
pub const LAST_CALLS: &str = "Its last calls";
pub const ALL_CALLS: &str = "All its calls";
pub const REFUSALS: &str = "Refused";

// The audit.
pub const DECISION: &str = "Decision";
pub const SINCE: &str = "Since";
pub const BEFORE: &str = "Before";
pub const SEARCH: &str = "Search";
pub const SHORTCUTS: &str = "Shortcuts";
pub const ALL: &str = "All";
pub const DENIED: &str = "Denied by the policy";
pub const FAILED: &str = "Failed";
pub const ANY: &str = "any";
pub const NO_SUCH_WORD: &str = "There is no";
pub const USE_ONE_OF: &str = "use one of";
pub const VERIFY: &str = "Verify the chain";
pub const EXPORT: &str = "Export all";
pub const MORE_CALLS: &str = "These are the newest; set Before to see earlier ones.";
pub const LOSES_DATA: &str = "deletes or replaces data for good";
pub const NO_CALLS: &str = "No calls match.";
pub const CHAIN_INTACT: &str = "The chain is intact. Rows:";
pub const CHAIN_TRIMMED: &str = "Trimmed rows before these:";
pub const CHAIN_BROKEN: &str = "The chain is broken at row";
pub const EXACT_SEALED: &str = "Some values are left out here. The exact arguments are encrypted with the owner's key; to read them, run on the server:";
pub const EXACT_NONE: &str =
    "Some values are left out here, and the exact arguments are not stored:";
pub const ROW: &str = "Row";
pub const REQUEST: &str = "Request";
pub const SESSION: &str = "Session";
pub const ADDRESS: &str = "Address";
pub const RISK: &str = "Risk";
pub const MODE: &str = "Mode";
pub const TOOK_MS: &str = "Duration, in ms";
pub const BEGAN: &str = "Began";
pub const ENDED_AT: &str = "Ended";
pub const SCHEDULE: &str = "Schedule";
pub const SCHEDULES: &str = "Schedules";
pub const SCHEDULES_HOW: &str = "gatewren schedule on the server runs, pauses and deletes them.";
pub const WOULD_RUN: &str = "Call";
pub const TIMES: &str = "Times";
pub const NEXT_RUN: &str = "Next run";
pub const LAST_RUN: &str = "Last run";
pub const PAUSED: &str = "paused";
pub const FAILING: &str = "failing";
pub const ACTIVE: &str = "active";
pub const RUNNING_NOW: &str = "running";
pub const CHANGE: &str = "Change";
pub const ARGUMENTS: &str = "Arguments, without secrets";
pub const LARGE_EXPORT: &str =
    "The audit is too large for a browser; on the server, run: sudo gatewren audit export";

// Connecting.
pub const ADDRESS_OF_MCP: &str = "The address";
pub const TOKEN_FIRST: &str = "A client connects with the token of an agent:";
pub const WITHOUT_TOKEN: &str = "Give this address to a program without a token, such as a connector of a chat service. It sends you here to decide:";
pub const ISSUER_IS_KNOWN: &str = "The certificate is one that you installed. Clients that know its issuer need no further setup.";
pub const AUTHORITY: &str = "The certificate authority";
pub const AUTHORITY_WHY: &str = "This server has its own certificate authority. It can only sign for the names of this server and for private addresses, never for public sites. Clients that trust it can verify that they are connected to this server.";
pub const FINGERPRINT: &str = "Compare its SHA-256 fingerprint before you trust it:";
pub const FINGERPRINT_HOW: &str = "This page came over the same connection. Trust only the fingerprint that the server itself prints:";
pub const PER_SYSTEM: &str = "How to trust it on each system";
pub const FETCH_FIRST: &str =
    "Download it, and compare its fingerprint with the one that the server prints:";

pub const CONFIRM: &str = "Type your password again";
pub const CONFIRM_WHY: &str = "This action gives or widens access, and you last typed your password more than 10 minutes ago. Type it to continue the action.";

/// A description of a policy preset.
pub fn preset(preset: Preset) -> &'static str {
    match preset {
        Preset::Observe => "reads; changes nothing",
        Preset::Suggest => "reads, and proposes changes for your decision",
        Preset::Operate => "makes reversible changes, and proposes the rest",
        Preset::Admin => {
            "does everything; the most dangerous calls only after confirmation at the client"
        }
    }
}

/// A description of a class of risk.
pub fn risk(risk: Risk) -> &'static str {
    match risk {
        Risk::Read => "changes nothing",
        other => other.effect(),
    }
}

/// A description of a mode.
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Allow => "run",
        Mode::Confirm => "ask the person at the client",
        Mode::ConfirmOwner => "ask you, and wait for your decision if the client can",
        Mode::Propose => "wait in the inbox for you",
        Mode::Deny => "are hidden",
    }
}

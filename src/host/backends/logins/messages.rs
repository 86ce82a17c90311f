//! Parses the messages of programs that authenticate users: sshd, dropbear, sudo, su and login.

use super::event::{LoginEvent, LoginKind};

/// Matches the messages that this file understands, for journalctl's `--grep` (PCRE2).
pub const MESSAGES: &str = "^(Accepted |Failed |Invalid user |message repeated |Connection (closed|reset) by (authen|invalid)|FAILED |\\(to |(Password|Pubkey) auth succ|Bad password att|Login attempt for non| *\\S+ : (TTY=|user NOT|command not|\\d+ incorrect))";

/// A message with what the log knows of it.
#[derive(Debug, Clone, Copy)]
pub struct LogMessage<'m> {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The program.
    pub program: &'m str,
    /// Its process.
    pub pid: Option<u32>,
    /// The text.
    pub text: &'m str,
}

/// Returns the login that a message is about; `None` for other messages.
pub fn login_of(message: LogMessage<'_>) -> Option<LoginEvent> {
    let event = match message.program {
        "sshd" | "sshd-session" | "sshd-auth" => ssh(message.at_ms, message.text),
        "dropbear" => dropbear(message.at_ms, message.text),
        "sudo" => sudo(message.at_ms, message.text),
        "su" | "su-l" => su(message.at_ms, message.text),
        "login" => console(message.at_ms, message.text),
        _ => None,
    };
    event.map(|event| LoginEvent {
        pid: message.pid,
        ..event
    })
}

/// `Accepted publickey for ada from 192.0.2.7 port 5 ssh2: ...`, `Failed password for invalid user x from ...`
fn ssh(at_ms: u64, text: &str) -> Option<LoginEvent> {
    if let Some(rest) = text.strip_prefix("message repeated ") {
        let (count, rest) = rest.split_once(" times: [ ")?;
        let event = ssh(at_ms, rest.strip_suffix(']').unwrap_or(rest))?;
        return Some(LoginEvent {
            count: count.parse().ok()?,
            ..event
        });
    }
    for (begin, success) in [("Accepted ", true), ("Failed ", false)] {
        let Some(rest) = text.strip_prefix(begin) else {
            continue;
        };
        let (method, rest) = rest.split_once(" for ")?;
        // "none" asks which methods there are; it is no attempt.
        if method == "none" {
            return None;
        }
        let rest = rest.strip_prefix("invalid user ").unwrap_or(rest);
        let (user, address) = user_and_address(rest)?;
        let event = LoginEvent::new(at_ms, LoginKind::Ssh, user, success);
        return Some(event.from(address).by(method));
    }
    let invalid = text.strip_prefix("Invalid user ").map(user_and_address);
    let closed = ["closed", "reset"].iter().find_map(|how| {
        let rest = text.strip_prefix("Connection ")?.strip_prefix(how)?;
        let rest = rest.strip_prefix(" by ")?;
        let rest = rest
            .strip_prefix("authenticating user ")
            .or_else(|| rest.strip_prefix("invalid user "))?;
        // Here the address follows the name, without a word between them; a name may have spaces.
        let (before, _) = rest.rsplit_once(" port ")?;
        Some(before.rsplit_once(' '))
    });
    let (user, address) = invalid.or(closed)??;
    Some(LoginEvent::new(at_ms, LoginKind::Ssh, user, false).from(address))
}

/// Parses `NAME from ADDRESS port N`. A name is any text, also one with ` from ` in it: the last one counts.
fn user_and_address(text: &str) -> Option<(&str, &str)> {
    let (before, _) = text.rsplit_once(" port ").unwrap_or((text, ""));
    before.rsplit_once(" from ")
}

/// `Pubkey auth succeeded for 'root' with ... key SHA256:... from 192.0.2.7:5`
fn dropbear(at_ms: u64, text: &str) -> Option<LoginEvent> {
    let (_, address) = text.rsplit_once(" from ")?;
    let address = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let forms = [
        ("Pubkey auth succeeded for ", true, "publickey"),
        ("Password auth succeeded for ", true, "password"),
        ("Bad password attempt for ", false, "password"),
        ("Login attempt for nonexistent user", false, ""),
    ];
    let (rest, success, method) = forms.iter().find_map(|(begin, success, method)| {
        Some((text.strip_prefix(begin)?, *success, *method))
    })?;
    let user = rest.split('\'').nth(1).unwrap_or_default();
    let event = LoginEvent::new(at_ms, LoginKind::Ssh, user, success);
    Some(event.from(address).by(method))
}

/// `ada : TTY=pts/0 ; PWD=/home/ada ; USER=root ; COMMAND=/bin/ls`
fn sudo(at_ms: u64, text: &str) -> Option<LoginEvent> {
    let (user, rest) = text.trim_start().split_once(" : ")?;
    // The command is last and may contain anything.
    let facts = rest
        .split_once(" ; COMMAND=")
        .map_or(rest, |(facts, _)| facts);
    let fact = |name: &str| facts.split(" ; ").find_map(|fact| fact.strip_prefix(name));
    let success = facts.starts_with("TTY=") || facts.starts_with("PWD=");
    let attempts = facts
        .split_once(" incorrect password attempt")
        .and_then(|(count, _)| count.parse().ok());
    let known = success
        || attempts.is_some()
        || facts.contains("NOT in sudoers")
        || facts.starts_with("command not");
    let event = LoginEvent::new(at_ms, LoginKind::Sudo, user, success)
        .on(fact("TTY=").unwrap_or_default())
        .switching_to(fact("USER=").unwrap_or_default());
    known.then(|| LoginEvent {
        count: attempts.unwrap_or(1),
        ..event
    })
}

/// `(to root) ada on pts/0`, `FAILED SU (to root) ada on pts/0`
fn su(at_ms: u64, text: &str) -> Option<LoginEvent> {
    let failed = text.strip_prefix("FAILED SU ");
    let rest = failed.unwrap_or(text).strip_prefix("(to ")?;
    let (to, rest) = rest.split_once(") ")?;
    let (user, terminal) = rest.rsplit_once(" on ")?;
    let event = LoginEvent::new(at_ms, LoginKind::Su, user, failed.is_none());
    Some(event.on(terminal).switching_to(to))
}

/// `FAILED LOGIN (1) on '/dev/tty1' FOR 'root', Authentication failure`. wtmp has those that succeeded.
fn console(at_ms: u64, text: &str) -> Option<LoginEvent> {
    let rest = text.strip_prefix("FAILED LOGIN ")?;
    let mut quoted = rest.split('\'');
    let (terminal, user) = (quoted.nth(1)?, quoted.nth(1)?);
    let terminal = terminal.strip_prefix("/dev/").unwrap_or(terminal);
    Some(LoginEvent::new(at_ms, LoginKind::Console, user, false).on(terminal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(program: &str, text: &str) -> Option<LoginEvent> {
        login_of(LogMessage {
            at_ms: 5,
            program,
            pid: Some(9),
            text,
        })
    }

    /// A login in one line.
    fn line(program: &str, text: &str) -> String {
        let one = of(program, text).unwrap_or_else(|| panic!("{text}"));
        let words = [&one.from, &one.terminal, &one.method, &one.as_user];
        let words: Vec<&str> = words.map(|word| word.as_deref().unwrap_or("-")).to_vec();
        let outcome = if one.success { "ok" } else { "failed" };
        format!(
            "{} {} {} x{}",
            one.user,
            words.join(" "),
            outcome,
            one.count
        )
    }

    /// Messages of each program, with the login that each is about.
    #[rustfmt::skip]
    const FORMS: &[(&str, &str, &str)] = &[
        ("sshd", "Accepted publickey for ada from 192.0.2.7 port 5 ssh2: ED25519 SHA256:x",
         "ada 192.0.2.7 - publickey - ok x1"),
        ("sshd-session", "Accepted password for root from 2001:db8::1 port 5 ssh2",
         "root 2001:db8::1 - password - ok x1"),
        ("sshd", "Failed password for invalid user bob from 192.0.2.7 port 5 ssh2",
         "bob 192.0.2.7 - password - failed x1"),
        ("sshd", "message repeated 4 times: [ Failed password for root from 192.0.2.7 port 5 ssh2]",
         "root 192.0.2.7 - password - failed x4"),
        ("sshd", "Invalid user eve from 192.0.2.8 port 7",
         "eve 192.0.2.8 - - - failed x1"),
        ("sshd", "Connection closed by authenticating user root 192.0.2.8 port 7 [preauth]",
         "root 192.0.2.8 - - - failed x1"),
        ("dropbear", "Pubkey auth succeeded for 'root' with ssh-ed25519 key SHA256:y from 192.0.2.7:55",
         "root 192.0.2.7 - publickey - ok x1"),
        ("dropbear", "Bad password attempt for 'root' from 192.0.2.7:55",
         "root 192.0.2.7 - password - failed x1"),
        ("sudo", "     ada : TTY=pts/0 ; PWD=/home/ada ; USER=root ; COMMAND=/bin/x ; USER=y",
         "ada - pts/0 - root ok x1"),
        ("sudo", "ada : 3 incorrect password attempts ; TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/sh",
         "ada - pts/0 - root failed x3"),
        ("sudo", "eve : user NOT in sudoers ; TTY=pts/1 ; PWD=/ ; USER=root ; COMMAND=/bin/sh",
         "eve - pts/1 - root failed x1"),
        ("su", "(to root) ada on pts/0",
         "ada - pts/0 - root ok x1"),
        ("su", "FAILED SU (to root) ada on pts/0",
         "ada - pts/0 - root failed x1"),
        ("login", "FAILED LOGIN (1) on '/dev/tty1' FOR 'root', Authentication failure",
         "root - tty1 - - failed x1"),
    ];

    #[test]
    fn each_program_says_it_in_its_own_words() {
        for (program, text, expected) in FORMS {
            assert_eq!(line(program, text), *expected);
        }
    }

    #[test]
    fn the_pattern_is_one_that_the_helper_takes() {
        let pattern = crate::helper_client::LogPattern::try_from(MESSAGES.to_owned());
        assert!(pattern.is_ok(), "{} bytes", MESSAGES.len());
    }

    #[test]
    fn a_name_cannot_pose_as_an_address() {
        let text =
            "Failed password for invalid user root from 203.0.113.9 from 192.0.2.7 port 5 ssh2";
        let one = of("sshd", text).unwrap();
        assert_eq!(one.from.as_deref(), Some("192.0.2.7"));
        let text = "Invalid user x\u{1b}[2J\u{202e} from 192.0.2.7 port 5";
        let one = of("sshd", text).unwrap();
        assert!(!one.user.contains(['\u{1b}', '\u{202e}']), "{one:?}");
        let long = format!("Invalid user {} from 192.0.2.7 port 5", "x".repeat(5000));
        assert!(of("sshd", &long).unwrap().user.len() <= 80);
    }

    #[test]
    fn other_messages_are_no_logins() {
        for (program, text) in [
            ("sshd", "Server listening on 0.0.0.0 port 22."),
            ("sshd", "Failed none for ada from 192.0.2.7 port 5 ssh2"),
            ("sshd", "Connection closed by 192.0.2.7 port 5 [preauth]"),
            (
                "sudo",
                "pam_unix(sudo:session): session opened for user root",
            ),
            (
                "kernel",
                "Accepted publickey for ada from 192.0.2.7 port 5 ssh2",
            ),
            ("sshd", ""),
            ("login", "FAILED LOGIN"),
            ("su", "(to "),
        ] {
            assert_eq!(of(program, text), None, "{text}");
        }
    }
}

//! Combines what several records have about the same logins.

use std::collections::BTreeSet;

use super::event::{LoginEvent, LoginKind};

/// How far apart two records of one login may be: sshd writes wtmp after the session is set up.
const SAME_LOGIN_MS: u64 = 10_000;

/// The records of one machine.
#[derive(Debug, Default)]
pub struct MachineRecords {
    /// Of the journal.
    pub journal: Vec<LoginEvent>,
    /// Of syslog's file.
    pub syslog: Vec<LoginEvent>,
    /// Of wtmp.
    pub wtmp: Vec<LoginEvent>,
    /// Of btmp.
    pub btmp: Vec<LoginEvent>,
}

impl MachineRecords {
    /// Returns each login once. The journal and syslog's file have the same messages, and sshd writes its logins into
    /// wtmp and btmp too.
    pub fn combined(self) -> Vec<LoginEvent> {
        let begins = |events: &[LoginEvent]| events.iter().map(|event| event.at_ms).min();
        let journal_begins = begins(&self.journal).unwrap_or(u64::MAX);
        let mut all = self.journal;
        let older = self.syslog.into_iter();
        all.extend(older.filter(|event| event.at_ms < journal_begins));
        let mut all = without_follow_ups(all);
        let messages_begin = begins(&all).unwrap_or(u64::MAX);
        all.extend(
            self.btmp
                .into_iter()
                .filter(|event| event.kind != LoginKind::Ssh || event.at_ms < messages_begin),
        );
        for login in self.wtmp {
            match all.iter_mut().find(|event| is_same(event, &login)) {
                Some(event) => event.terminal = event.terminal.take().or(login.terminal),
                None => all.push(login),
            }
        }
        all
    }
}

/// Whether an entry of wtmp is the login that sshd reported.
fn is_same(event: &LoginEvent, login: &LoginEvent) -> bool {
    event.success
        && event.kind == LoginKind::Ssh
        && login.kind == LoginKind::Ssh
        && event.terminal.is_none()
        && event.user == login.user
        && event.at_ms.abs_diff(login.at_ms) <= SAME_LOGIN_MS
}

/// Removes messages about a connection that sshd has already reported as a failed attempt: it closes such a
/// connection with another message.
fn without_follow_ups(mut events: Vec<LoginEvent>) -> Vec<LoginEvent> {
    let is_attempt = |event: &LoginEvent| event.kind == LoginKind::Ssh && event.method.is_some();
    let attempts: BTreeSet<u32> = events
        .iter()
        .filter(|event| is_attempt(event))
        .filter_map(|event| event.pid)
        .collect();
    let mut seen = BTreeSet::new();
    events.retain(|event| match event.pid {
        Some(pid) if event.kind == LoginKind::Ssh && event.method.is_none() => {
            !attempts.contains(&pid) && seen.insert(pid)
        }
        _ => true,
    });
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(at_s: u64, user: &str, pid: u32, success: bool) -> LoginEvent {
        let event = LoginEvent::new(at_s * 1000, LoginKind::Ssh, user, success);
        LoginEvent {
            pid: Some(pid),
            ..event.from("192.0.2.7")
        }
    }

    #[test]
    fn a_login_that_three_records_have_is_one() {
        let records = MachineRecords {
            journal: vec![ssh(100, "ada", 1, true).by("publickey")],
            syslog: vec![
                ssh(50, "old", 9, true).by("password"),
                ssh(100, "ada", 1, true).by("publickey"),
            ],
            wtmp: vec![
                ssh(101, "ada", 5, true).on("pts/0"),
                ssh(101, "eve", 6, true).on("pts/1"),
            ],
            btmp: vec![ssh(40, "old", 3, false), ssh(102, "new", 4, false)],
        };
        let mut all = records.combined();
        all.sort_by_key(|event| event.at_ms);
        let users: Vec<_> = all
            .iter()
            .map(|one| (one.user.as_str(), one.terminal.as_deref()))
            .collect();
        assert_eq!(
            users,
            [
                ("old", None),
                ("old", None),
                ("ada", Some("pts/0")),
                ("eve", Some("pts/1"))
            ]
        );
    }

    #[test]
    fn one_failed_connection_counts_once() {
        let records = MachineRecords {
            journal: vec![
                ssh(1, "eve", 1, false),
                ssh(2, "eve", 1, false).by("password"),
                ssh(3, "eve", 1, false).by("password"),
                ssh(4, "eve", 1, false),
                ssh(5, "bob", 2, false),
                ssh(6, "bob", 2, false),
            ],
            ..MachineRecords::default()
        };
        let users: Vec<String> = records.combined().into_iter().map(|one| one.user).collect();
        assert_eq!(users, ["eve", "eve", "bob"]);
    }
}

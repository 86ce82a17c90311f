//! `login_list`: who logged in to the host, its containers and this server, and from where.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::bounded_number::BoundedNumber;
use super::failure::failed;
use gatewren_base::sys::{now_ms, rfc3339};
use gatewren_host::backends::{
    ContainerRef, LogMoment, LoginEvent, LoginKind, LoginPeriod, LoginsFound, MachineLogins,
    PlacedLogin, UnreadSource,
};
use gatewren_wire::registry::{Cx, HelperClass, Page, Result, Risk, Scope, Toolset};

/// The default period.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The most addresses and users that failed attempts are counted by; those with fewer attempts are left out.
const MAX_COUNTED: usize = 20;

/// The most records that could not be read that are named.
const MAX_UNREAD: usize = 40;

/// Returns the sign-ins at the owner's page, and the agents that used this server, in a period.
pub type ReadOwnLogins =
    Box<dyn Fn(LoginPeriod) -> std::result::Result<Vec<LoginEvent>, String> + Send + Sync>;

/// What the tool reads.
pub struct LoginSources {
    /// The host and its containers.
    pub logins: MachineLogins,
    /// This server.
    pub own: ReadOwnLogins,
}

/// The toolset.
pub fn tools(sources: Arc<LoginSources>) -> Toolset<LoginSources> {
    Toolset::new(sources)
        .with_name("logs")
        .tool("login_list", Risk::Read, list)
        .about(Scope::Within)
        .through(HelperClass::HostLogs)
        .or_through(HelperClass::LxcReads)
        .titled("List logins")
}

/// List who logged in and from where: SSH, console, sudo and su on the host and in containers, the owner's page and
/// agents; newest first, default: the last day. `logs_query` has the messages.
///
/// Failed attempts are counted by address and user. `unread` names what cannot be read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoginList {
    /// Only this container; default: all you may see.
    container: Option<ContainerRef>,
    /// Start: a time (RFC 3339), or an age such as `12h` or `7d`.
    since: Option<LogMoment>,
    /// End; same format.
    until: Option<LogMoment>,
    /// Failed attempts in the list: `without`, `only` or `with`.
    #[serde(default)]
    failed: FailedLogins,
    /// Maximum entries.
    #[serde(default)]
    limit: BoundedNumber<1, 200, 50>,
    /// `next_offset` of an earlier answer.
    #[serde(default)]
    offset: u32,
}

/// Which attempts are in the list; failed ones are always counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "")]
enum FailedLogins {
    #[default]
    Without,
    Only,
    With,
}

/// A login, or a failed attempt.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedLogin {
    /// When, RFC 3339.
    at: String,
    /// The container; absent for the host and this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<ContainerRef>,
    /// What was logged in to.
    kind: LoginKind,
    /// The user, or the agent's name.
    user: String,
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminal: Option<String>,
    /// How, such as `publickey` or `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// The user that sudo or su switched to.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_user: Option<String>,
    /// Whether it succeeded.
    success: bool,
    /// How often, if more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

/// Counts of failed attempts.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct FailedCounts {
    /// All attempts.
    total: u64,
    /// The attempts from each address, at most 20 addresses.
    by_address: BTreeMap<String, u64>,
    /// The attempts for each user, at most 20 users.
    by_user: BTreeMap<String, u64>,
    /// The number of addresses.
    addresses: usize,
    /// The number of users.
    users: usize,
}

#[derive(Serialize, JsonSchema)]
struct LoginAnswer {
    /// The period's beginning.
    since: String,
    /// The logins, newest first.
    logins: Vec<ListedLogin>,
    /// How many there are.
    total: usize,
    /// Offset of the next ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Failed attempts.
    failed: FailedCounts,
    /// The records that were read.
    read: Vec<String>,
    /// Those that could not be read, or not in full: logins may be missing.
    unread: Vec<UnreadSource>,
}

async fn list(sources: Arc<LoginSources>, asked: LoginList, cx: Cx) -> Result<LoginAnswer> {
    let period = LoginPeriod {
        since_ms: asked
            .since
            .map_or_else(|| now_ms().saturating_sub(DAY_MS), LogMoment::ms),
        until_ms: asked.until.map(LogMoment::ms),
    };
    let mut found = find_logins(&sources, asked.container.as_ref(), period, &cx).await?;
    found.unread.truncate(MAX_UNREAD);
    let failed = FailedCounts::of(&found.events);
    found.events.retain(|one| match asked.failed {
        FailedLogins::Without => one.event.success,
        FailedLogins::Only => !one.event.success,
        FailedLogins::With => true,
    });
    found
        .events
        .sort_by_key(|one| std::cmp::Reverse(one.event.at_ms));
    let total = found.events.len();
    let listed = found.events.into_iter().map(ListedLogin::of);
    let page = Page::of(listed, asked.offset.into(), asked.limit.get());
    Ok(LoginAnswer {
        since: rfc3339(period.since_ms),
        logins: page.items,
        total,
        next_offset: page.next_offset,
        failed,
        read: found.read,
        unread: found.unread,
    })
}

/// Returns the logins that the caller may see, in no order.
pub async fn find_logins(
    sources: &Arc<LoginSources>,
    container: Option<&ContainerRef>,
    period: LoginPeriod,
    cx: &Cx,
) -> Result<LoginsFound> {
    let reach = cx.caller().reach.clone();
    let found = sources
        .logins
        .find(&reach, container, period, cx.reference())
        .await;
    let mut found = found.map_err(failed)?;
    // Other agents and the owner are of no space.
    if container.is_some() || !reach.is_everything() {
        return Ok(found);
    }
    let source = "gatewren's own audit";
    let own = sources.clone();
    let own = spawn_blocking(move || (own.own)(period)).await;
    match own.unwrap_or_else(|cause| Err(cause.to_string())) {
        Ok(events) => {
            found.read.push(source.to_owned());
            found
                .events
                .extend(events.into_iter().map(|event| PlacedLogin {
                    container: None,
                    event,
                }));
        }
        Err(why) => found.unread.push(UnreadSource::new(source, &why)),
    }
    Ok(found)
}

impl ListedLogin {
    fn of(PlacedLogin { container, event }: PlacedLogin) -> Self {
        Self {
            at: rfc3339(event.at_ms),
            container,
            kind: event.kind,
            user: event.user,
            from: event.from,
            terminal: event.terminal,
            method: event.method,
            as_user: event.as_user,
            success: event.success,
            count: (event.count > 1).then_some(event.count),
        }
    }
}

impl FailedCounts {
    fn of(all: &[PlacedLogin]) -> Self {
        let (mut addresses, mut users) = (BTreeMap::new(), BTreeMap::new());
        let mut total = 0;
        for event in all.iter().map(|one| &one.event).filter(|one| !one.success) {
            total += event.count;
            *users.entry(event.user.clone()).or_default() += event.count;
            if let Some(address) = &event.from {
                *addresses.entry(address.clone()).or_default() += event.count;
            }
        }
        Self {
            total,
            addresses: addresses.len(),
            users: users.len(),
            by_address: most(addresses),
            by_user: most(users),
        }
    }
}

/// Keeps those with the most attempts.
fn most(counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.1));
    counts.truncate(MAX_COUNTED);
    counts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(user: &str, from: &str, success: bool) -> PlacedLogin {
        PlacedLogin {
            container: None,
            event: LoginEvent::new(1000, LoginKind::Ssh, user, success).from(from),
        }
    }

    #[test]
    fn failed_attempts_are_counted_by_address_and_by_user() {
        let mut all = vec![attempt("ada", "192.0.2.1", true)];
        all.extend((0..312).map(|_| attempt("root", "192.0.2.7", false)));
        all.extend(
            (0..40).map(|n| attempt(&format!("u{n}"), &format!("192.0.2.{}", 100 + n), false)),
        );
        let counts = FailedCounts::of(&all);
        assert_eq!(counts.total, 352);
        assert_eq!(counts.by_address["192.0.2.7"], 312);
        assert_eq!(counts.by_user["root"], 312);
        assert!(!counts.by_user.contains_key("ada"));
        assert_eq!(
            (counts.by_address.len(), counts.addresses),
            (MAX_COUNTED, 41)
        );
    }
}

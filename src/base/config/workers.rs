//! `[workers]`: background work of the front that an owner can switch off.

/// The background work that can be off. Ending commands, the audit, the expiry of tokens and sessions, the renewal of the
/// certificate and approved changes are not in it: a server without them would not be safe, or would not do what its
/// owner decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own, and they do not depend on each other"
)]
pub struct WorkerSettings {
    /// Keeps the state document and the usage history up to date.
    pub observer: bool,
    /// Makes notifications for the owner, and sends them to the channels.
    pub notifier: bool,
    /// Deletes expired tasks, and trims the audit.
    pub sweeper: bool,
    /// Runs schedules and checks watches.
    pub jobs: bool,
}

impl WorkerSettings {
    /// All of them off.
    pub const NONE: Self = Self {
        observer: false,
        notifier: false,
        sweeper: false,
        jobs: false,
    };

    /// Returns the keys of those that are off.
    pub fn switched_off(self) -> Vec<&'static str> {
        let Self {
            observer,
            notifier,
            sweeper,
            jobs,
        } = self;
        let all = [
            ("observer", observer),
            ("notifier", notifier),
            ("sweeper", sweeper),
            ("jobs", jobs),
        ];
        let off = all.into_iter().filter(|(_, is_on)| !is_on);
        off.map(|(key, _)| key).collect()
    }
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            observer: true,
            notifier: true,
            sweeper: true,
            jobs: true,
        }
    }
}

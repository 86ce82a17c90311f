//! The vault: one open file, one writing thread, and access to its tables.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::watch;

use super::agents::grants::GrantTable;
use super::agents::keys::SecretKey;
use super::agents::logins::LoginTable;
use super::agents::metrics_token::MetricsTokenTable;
use super::agents::oauth_clients::OauthClientTable;
use super::agents::oauth_links::OauthLinkTable;
use super::agents::owner::OwnerTable;
use super::agents::pairings::PairingTable;
use super::agents::table::AgentTable;
use super::agents::token_warnings::TokenWarningTable;
use super::audit::chain_tail::ChainTail;
use super::audit::row_job::AuditRowContext;
use super::audit::table::AuditTable;
use super::commit::WriterHooks;
use super::error::VaultError;
use super::ids::IdGenerator;
use super::job::Durability;
use super::migration::STEPS;
use super::open;
use super::shared::SharedVault;
use super::work::changes::ChangeTable;
use super::work::doctor_report::DoctorReportTable;
use super::work::offered_tools::OfferTable;
use super::work::push_devices::PushDeviceTable;
use super::work::schedules::ScheduleTable;
use super::work::session_messages::RelayedMessageTable;
use super::work::sessions::SessionTable;
use super::work::subscriptions::SubscriptionTable;
use super::work::tasks::TaskTable;
use super::work::watches::WatchTable;
use super::writer::VaultWriter;

/// An open vault. Clones share it. Dropping the last one writes what is queued and closes the file.
#[derive(Clone)]
pub struct Vault {
    pub(super) shared: Arc<SharedVault>,
}

impl Vault {
    /// Opens the vault, or creates it (mode 0600). Its directory must exist.
    ///
    /// Checks the whole file, and blocks until that is done.
    pub fn open(path: &Path) -> Result<Self, VaultError> {
        let writing = open::writing(path, STEPS)?;
        let reading = open::reading(path)?;
        let changes = watch::Sender::new(0);
        let inbox = watch::Sender::new(0);
        let watches = watch::Sender::new(0);
        let counts = [changes.clone(), inbox.clone(), watches.clone()];
        let elsewhere = move || {
            for count in &counts {
                count.send_modify(|changes| *changes += 1);
            }
        };
        let tail = Arc::new(ChainTail::default());
        let (forgetful, durable) = (Arc::clone(&tail), Arc::clone(&tail));
        let hooks = WriterHooks {
            elsewhere: Box::new(elsewhere),
            forget: Box::new(move || forgetful.forget()),
            reached_disk: Box::new(move || durable.reached_disk()),
        };
        let writer = VaultWriter::start(writing, path, hooks)?;
        let shared = Arc::new(SharedVault {
            trail: Arc::new(AuditRowContext {
                path: path.into(),
                tail,
                failing: AtomicBool::new(false),
            }),
            writer,
            reader: Mutex::new(reading),
            long_reader: Mutex::default(),
            agent_changes: changes,
            inbox_changes: inbox,
            watch_changes: watches,
            audit_run_after: AtomicI64::new(0),
            ids: IdGenerator::new()?,
        });
        Ok(Self { shared })
    }

    /// The agents.
    pub fn agents(&self) -> AgentTable<'_> {
        AgentTable::new(&self.shared)
    }

    /// The owner's password.
    pub fn owner(&self) -> OwnerTable<'_> {
        OwnerTable::new(&self.shared)
    }

    /// Agents to be added when a client presents the pairing code.
    pub fn pairings(&self) -> PairingTable<'_> {
        PairingTable::new(&self.shared)
    }

    /// The logins, each with a cookie.
    pub fn logins(&self) -> LoginTable<'_> {
        LoginTable::new(&self.shared)
    }

    /// The programs that asked for access over OAuth.
    pub fn oauth_clients(&self) -> OauthClientTable<'_> {
        OauthClientTable::new(&self.shared)
    }

    /// The tokens of those programs.
    pub fn oauth_links(&self) -> OauthLinkTable<'_> {
        OauthLinkTable::new(&self.shared)
    }

    /// What doctor found when it last ran.
    pub fn doctor_report(&self) -> DoctorReportTable<'_> {
        DoctorReportTable::new(&self.shared)
    }

    /// The tools that policies can refer to.
    pub fn offer(&self) -> OfferTable<'_> {
        OfferTable::new(&self.shared)
    }

    /// The open sessions.
    pub fn sessions(&self) -> SessionTable<'_> {
        SessionTable::new(&self.shared)
    }

    /// What clients have sent to one front for another.
    pub fn session_messages(&self) -> RelayedMessageTable<'_> {
        RelayedMessageTable::new(&self.shared)
    }

    /// The subscriptions of the sessions.
    pub fn subscriptions(&self) -> SubscriptionTable<'_> {
        SubscriptionTable::new(&self.shared)
    }

    /// Calls that were answered with a task.
    pub fn tasks(&self) -> TaskTable<'_> {
        TaskTable::new(&self.shared)
    }

    /// The agents' watches.
    pub fn watches(&self) -> WatchTable<'_> {
        WatchTable::new(&self.shared)
    }

    /// The agents' proposals and the owner's decisions.
    pub fn changes(&self) -> ChangeTable<'_> {
        ChangeTable(&self.shared)
    }

    /// The agents' schedules and their runs.
    pub fn schedules(&self) -> ScheduleTable<'_> {
        ScheduleTable(&self.shared)
    }

    /// The devices that get Web Push messages.
    pub fn push_devices(&self) -> PushDeviceTable<'_> {
        PushDeviceTable::new(&self.shared)
    }

    /// The owner's grants, which are limited in time.
    pub fn grants(&self) -> GrantTable<'_> {
        GrantTable::new(&self.shared)
    }

    /// The token that only gives access to the metrics.
    pub fn metrics_token(&self) -> MetricsTokenTable<'_> {
        MetricsTokenTable::new(&self.shared)
    }

    /// The tokens that the owner was warned about.
    pub fn token_warnings(&self) -> TokenWarningTable<'_> {
        TokenWarningTable::new(&self.shared)
    }

    /// The audit.
    pub fn audit(&self) -> AuditTable<'_> {
        AuditTable::new(&self.shared)
    }

    /// Returns a secret of the server, such as the key that signs session ids. It is made at its first use.
    pub async fn key(&self, name: &'static str) -> Result<SecretKey, VaultError> {
        self.shared.key(name).await
    }

    /// Runs a job through the queue and the file. Success means that the vault works.
    pub async fn probe(&self) -> Result<(), VaultError> {
        let work = |connection: &Connection| {
            connection
                .prepare_cached("SELECT count(*) FROM meta")?
                .query_row([], |_| Ok(()))
        };
        let doing = "answer a probe";
        let writer = &self.shared.writer;
        writer
            .write(doing, Durability::Process, work, |()| ())
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use gatewren_base::sys::Scratch;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[tokio::test]
    async fn all_its_files_are_private() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        vault.probe().await.unwrap();
        vault.key("session").await.unwrap();
        for file in std::fs::read_dir(scratch.path()).unwrap() {
            let path = file.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
        assert!(scratch.join("vault.db-wal").exists(), "it writes ahead");
    }

    #[tokio::test]
    async fn r8_a_key_is_made_once_and_stays() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let key = vault.key("session").await.unwrap();
        assert_ne!(*key, [0; 32]);
        assert_eq!(vault.key("session").await.unwrap(), key);
        assert_ne!(vault.key("other").await.unwrap(), key);
        drop(vault);
        let again = Vault::open(&path).unwrap();
        assert_eq!(again.key("session").await.unwrap(), key);
    }

    #[tokio::test]
    async fn what_waits_is_written_before_it_closes() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        for n in 0..1000_u64 {
            vault.agents().touch(&format!("agent {n}"), n);
        }
        vault
            .shared
            .writer
            .enqueue_uncounted("count", |connection| {
                connection
                    .execute("INSERT INTO meta VALUES ('last', 'yes')", [])
                    .map(drop)
            })
            .unwrap();
        drop(vault);
        let other = Connection::open(&path).unwrap();
        let last: String = other
            .query_row("SELECT value FROM meta", [], |row| row.get(0))
            .unwrap();
        assert_eq!(last, "yes");
    }

    #[tokio::test]
    async fn a_write_that_fails_takes_no_other_with_it() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let write = |sql: &'static str| {
            let work = move |connection: &Connection| connection.execute_batch(sql);
            vault
                .shared
                .writer
                .write("try", Durability::Process, work, |()| ())
        };
        let bad = "INSERT INTO meta VALUES ('undone', 'x'); INSERT INTO absent VALUES (1);";
        let (first, second, third) = tokio::join!(
            write("INSERT INTO meta VALUES ('a', 'x')"),
            write(bad),
            write("INSERT INTO meta VALUES ('b', 'x')"),
        );
        first.unwrap();
        third.unwrap();
        let error = second.unwrap_err().to_string();
        assert!(
            error.starts_with("the vault could not try: no such table"),
            "{error}"
        );
        let names = "SELECT group_concat(key) FROM (SELECT key FROM meta ORDER BY key)";
        let names = vault.shared.read("look", |c| {
            c.query_row(names, [], |row| row.get::<_, String>(0))
        });
        assert_eq!(names.unwrap(), "a,b");
    }

    #[tokio::test]
    async fn the_first_schema_is_brought_forward_without_its_sessions() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let first = open::writing(&path, &STEPS[..1]).unwrap();
        first
            .execute_batch(
                "INSERT INTO session VALUES ('ended', 1, 2);
                 INSERT INTO key VALUES ('kept', zeroblob(32));",
            )
            .unwrap();
        drop(first);
        let vault = Vault::open(&path).unwrap();
        assert_eq!(vault.sessions().list().unwrap(), []);
        assert_eq!(*vault.key("kept").await.unwrap(), [0; 32]);
    }

    #[tokio::test]
    async fn another_process_is_noticed() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let (ours, theirs) = (Vault::open(&path).unwrap(), Vault::open(&path).unwrap());
        let mut changes = ours.agents().changes();
        theirs.sessions().add("s1", "a").await.unwrap();
        let wait = tokio::time::timeout(std::time::Duration::from_mins(2), changes.changed());
        wait.await.unwrap().unwrap();
        assert_eq!(ours.sessions().list().unwrap().len(), 1);
    }
}

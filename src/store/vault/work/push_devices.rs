//! The devices that get Web Push messages, the server's key for push services, and the ntfy topic of the owner's page.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::{from_column, from_optional, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::{Zeroizing, now_ms, random_bytes};

/// The most devices.
pub const MAX_PUSH_DEVICES: usize = 8;

/// The name of the key's row in the table of keys. Its bytes are PKCS #8.
const VAPID_KEY: &str = "vapid-pkcs8";

/// The part of the schema's sixteenth version.
pub(in crate::vault) const SCHEMA: &str = "
CREATE TABLE push_device (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    endpoint   TEXT NOT NULL UNIQUE,
    p256dh     BLOB NOT NULL CHECK (length(p256dh) = 65),
    auth       BLOB NOT NULL CHECK (length(auth) = 16),
    created_ms INTEGER NOT NULL,
    sent_ms    INTEGER
) STRICT;
CREATE TABLE page_ntfy (
    only  INTEGER PRIMARY KEY CHECK (only = 1),
    url   TEXT NOT NULL,
    topic TEXT NOT NULL
) STRICT;
";

/// A subscription, as a browser creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPushDevice {
    /// What the owner recognizes it by.
    pub name: String,
    /// The URL at the push service; who has it and the keys can send to the device.
    pub endpoint: String,
    /// The device's public key.
    pub p256dh: Vec<u8>,
    /// The secret that it shares with this server.
    pub auth: Vec<u8>,
}

/// A device that gets messages. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushDevice {
    /// The id: `push_` and 16 hexadecimal digits.
    pub id: String,
    /// Its subscription.
    pub subscription: NewPushDevice,
    /// When it was added.
    pub created_ms: u64,
    /// When its push service last accepted a message.
    pub sent_ms: Option<u64>,
}

/// An ntfy topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageNtfy {
    /// The server's URL.
    pub url: String,
    /// The topic.
    pub topic: String,
}

/// Access to these tables.
pub struct PushDeviceTable<'a>(&'a SharedVault);

impl<'a> PushDeviceTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Returns all devices, oldest first.
    pub fn list(&self) -> Result<Vec<PushDevice>, VaultError> {
        self.0.read("list the devices", |connection| {
            let query =
                "SELECT id, name, endpoint, p256dh, auth, created_ms, sent_ms FROM push_device
                         ORDER BY created_ms, id";
            let mut select = connection.prepare_cached(query)?;
            select.query_map([], device)?.collect()
        })
    }

    /// Adds a device and returns its id; `None` if there are [`MAX_PUSH_DEVICES`]. A subscription that exists already
    /// gets the new keys and name.
    pub async fn add(&self, new: NewPushDevice) -> Result<Option<String>, VaultError> {
        let id = format!("push_{:016x}", u64::from_be_bytes(random_bytes()?));
        let now = to_column(now_ms());
        let work = move |connection: &Connection| {
            // At the limit nothing is inserted, but a known endpoint is still updated.
            let insert = "INSERT INTO push_device (id, name, endpoint, p256dh, auth, created_ms)
                          SELECT ?1, ?2, ?3, ?4, ?5, ?6
                          WHERE (SELECT count(*) FROM push_device WHERE endpoint <> ?3) < ?7
                          ON CONFLICT (endpoint) DO UPDATE SET name = ?2, p256dh = ?4, auth = ?5
                          RETURNING id";
            let most = to_column(MAX_PUSH_DEVICES as u64);
            let row = params![id, new.name, new.endpoint, new.p256dh, new.auth, now, most];
            let mut insert = connection.prepare(insert)?;
            insert.query_row(row, |row| row.get(0)).optional()
        };
        self.write("add a device", work).await
    }

    /// Removes a device; false if there is none with this id.
    pub async fn remove(&self, id: &str) -> Result<bool, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            connection.execute("DELETE FROM push_device WHERE id = ?1", [id])
        };
        Ok(self.write("remove a device", work).await? > 0)
    }

    /// Records that a device's push service has accepted a message.
    pub async fn note_sent(&self, id: &str) -> Result<(), VaultError> {
        let (id, now) = (id.to_owned(), to_column(now_ms()));
        let work = move |connection: &Connection| {
            let update = "UPDATE push_device SET sent_ms = ?2 WHERE id = ?1";
            connection.execute(update, params![id, now]).map(drop)
        };
        self.0.write("record a message to a device", work).await
    }

    /// Returns the key for push services, if there is one.
    pub fn vapid_key(&self) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        self.0.read("find the key for push services", find_key)
    }

    /// Stores this key for push services, unless there is one. Returns the one that is stored.
    pub async fn keep_vapid_key(
        &self,
        fresh: Zeroizing<Vec<u8>>,
    ) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let work = move |connection: &Connection| {
            if let Some(known) = find_key(connection)? {
                return Ok(known);
            }
            let keep = "INSERT INTO key (name, bytes) VALUES (?1, ?2)";
            connection.execute(keep, (VAPID_KEY, fresh.as_slice()))?;
            Ok(fresh)
        };
        self.write("store the key for push services", work).await
    }

    /// Returns the ntfy topic that the owner has set on the page.
    pub fn ntfy(&self) -> Result<Option<PageNtfy>, VaultError> {
        self.0.read("find the ntfy topic", |connection| {
            let row = |row: &Row<'_>| {
                Ok(PageNtfy {
                    url: row.get("url")?,
                    topic: row.get("topic")?,
                })
            };
            let query = "SELECT url, topic FROM page_ntfy";
            connection
                .prepare_cached(query)?
                .query_row([], row)
                .optional()
        })
    }

    /// Sets or removes the ntfy topic of the page.
    pub async fn set_ntfy(&self, ntfy: Option<PageNtfy>) -> Result<(), VaultError> {
        let work = move |connection: &Connection| {
            connection.execute("DELETE FROM page_ntfy", [])?;
            if let Some(PageNtfy { url, topic }) = ntfy {
                let insert = "INSERT INTO page_ntfy (only, url, topic) VALUES (1, ?1, ?2)";
                connection.execute(insert, [url, topic])?;
            }
            Ok(())
        };
        self.write("set the ntfy topic", work).await
    }

    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, VaultError> {
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, |_| ()).await
    }
}

fn find_key(connection: &Connection) -> Result<Option<Zeroizing<Vec<u8>>>, rusqlite::Error> {
    let query = "SELECT bytes FROM key WHERE name = ?1";
    let mut select = connection.prepare_cached(query)?;
    let row = |row: &Row<'_>| row.get(0).map(Zeroizing::new);
    select.query_row([VAPID_KEY], row).optional()
}

fn device(row: &Row<'_>) -> Result<PushDevice, rusqlite::Error> {
    Ok(PushDevice {
        id: row.get("id")?,
        subscription: NewPushDevice {
            name: row.get("name")?,
            endpoint: row.get("endpoint")?,
            p256dh: row.get("p256dh")?,
            auth: row.get("auth")?,
        },
        created_ms: from_column(row, "created_ms")?,
        sent_ms: from_optional(row, "sent_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    fn phone(number: usize) -> NewPushDevice {
        NewPushDevice {
            name: "Phone".to_owned(),
            endpoint: format!("https://push.example/{number}"),
            p256dh: vec![4; 65],
            auth: vec![1; 16],
        }
    }

    #[tokio::test]
    async fn devices_are_limited_and_one_that_subscribes_again_keeps_its_row() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let devices = vault.push_devices();
        let mut ids = Vec::new();
        for number in 0..MAX_PUSH_DEVICES {
            ids.push(devices.add(phone(number)).await.unwrap().unwrap());
        }
        assert_eq!(devices.add(phone(99)).await.unwrap(), None, "one too many");
        let again = NewPushDevice {
            auth: vec![2; 16],
            ..phone(3)
        };
        assert_eq!(
            devices.add(again.clone()).await.unwrap().as_ref(),
            Some(&ids[3])
        );
        devices.note_sent(&ids[3]).await.unwrap();
        let kept = devices.list().unwrap();
        let kept = kept.iter().find(|one| one.id == ids[3]).unwrap();
        assert_eq!(kept.subscription, again);
        assert!(kept.sent_ms >= Some(kept.created_ms));
        assert!(devices.remove(&ids[0]).await.unwrap());
        assert!(!devices.remove(&ids[0]).await.unwrap());
        assert!(devices.add(phone(99)).await.unwrap().is_some());
        let short = NewPushDevice {
            auth: vec![1; 15],
            ..phone(3)
        };
        assert!(devices.add(short).await.is_err());
    }

    #[tokio::test]
    async fn the_key_is_stored_once_and_the_topic_can_be_changed() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let devices = vault.push_devices();
        assert_eq!(devices.vapid_key().unwrap(), None);
        let keep = async |byte| {
            devices
                .keep_vapid_key(Zeroizing::new(vec![byte; 140]))
                .await
        };
        assert_eq!(*keep(1).await.unwrap(), vec![1; 140]);
        assert_eq!(*keep(2).await.unwrap(), vec![1; 140]);
        assert_eq!(devices.vapid_key().unwrap().unwrap().len(), 140);
        let ntfy = PageNtfy {
            url: "https://ntfy.lan".to_owned(),
            topic: "box".to_owned(),
        };
        for wanted in [None, Some(ntfy), None] {
            devices.set_ntfy(wanted.clone()).await.unwrap();
            assert_eq!(devices.ntfy().unwrap(), wanted);
        }
    }
}

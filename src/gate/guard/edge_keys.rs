//! The identity provider's keys: fetched on demand, rate-limited, and valid only for a limited time.

use std::fmt::Display;
use std::sync::{Arc, Mutex as Kept};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::auth::KeySet;
use crate::http::{AllowedServers, fetch};
use gatewren_base::config::KeyLocation;
use gatewren_base::sys::lock;

/// The minimum interval between two attempts is this fraction of the refresh interval.
const PART: u32 = 10;

/// Keys that can no longer be refreshed stay valid for this many refresh intervals.
const TIMES: u32 = 12;

/// The keys, while they are valid. Clones share them.
#[derive(Clone)]
pub struct EdgeKeys(Arc<Shared>);

struct Shared {
    place: KeyLocation,
    refresh: Duration,
    kept: Kept<Option<(Arc<KeySet>, Instant)>>,
    /// The time of the last attempt; the lock is held during an attempt, so that there is only one at a time.
    tried: Mutex<Option<Instant>>,
}

impl EdgeKeys {
    /// Creates a cache of the keys at this location, with this refresh interval.
    pub fn new(place: KeyLocation, refresh: Duration) -> Self {
        Self(Arc::new(Shared {
            place,
            refresh,
            kept: Kept::new(None),
            tried: Mutex::new(None),
        }))
    }

    /// Returns the valid keys. While there are some, a request does not wait for the provider.
    pub async fn current(&self) -> Option<Arc<KeySet>> {
        let Some((keys, age)) = self.cached_keys() else {
            return self.newer().await;
        };
        if age >= self.0.refresh {
            let again = self.clone();
            tokio::spawn(async move { again.try_again().await });
        }
        Some(keys)
    }

    /// Tries to fetch the keys, unless that was just done, and returns them.
    pub async fn newer(&self) -> Option<Arc<KeySet>> {
        self.try_again().await;
        self.cached_keys().map(|(keys, _)| keys)
    }

    /// The last fetched keys and their age, unless they are too old.
    fn cached_keys(&self) -> Option<(Arc<KeySet>, Duration)> {
        let kept = lock(&self.0.kept);
        let (keys, at) = kept.as_ref()?;
        let age = at.elapsed();
        (age < self.0.refresh * TIMES).then(|| (Arc::clone(keys), age))
    }

    async fn try_again(&self) {
        let mut tried = self.0.tried.lock().await;
        if tried.is_some_and(|at| at.elapsed() < self.0.refresh / PART) {
            return;
        }
        *tried = Some(Instant::now());
        match fetch_keys(&self.0.place).await {
            Ok(keys) => {
                let fresh = Some((Arc::new(keys), Instant::now()));
                *lock(&self.0.kept) = fresh;
            }
            Err(cause) => tracing::warn!(cause, "fetching the keys of edge_jwt.jwks failed"),
        }
    }
}

async fn fetch_keys(place: &KeyLocation) -> Result<KeySet, String> {
    match place {
        KeyLocation::Url(url) => {
            let servers = AllowedServers::HttpsOrThisServer;
            let json = fetch(url, servers, KeySet::MAX_BYTES).await;
            KeySet::read(&json.map_err(words)?).map_err(words)
        }
        KeyLocation::File(path) => {
            let path = path.clone();
            let read = tokio::task::spawn_blocking(move || KeySet::read_file(&path));
            read.await.map_err(words)?.map_err(words)
        }
    }
}

fn words(cause: impl Display) -> String {
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use gatewren_base::sys::Scratch;

    const MINUTE: Duration = Duration::from_mins(1);

    /// Any point works: nothing is signed here.
    const KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256",
        "x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "y":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}"#;

    #[tokio::test(start_paused = true)]
    async fn keys_count_for_a_while_after_they_are_out_of_reach() {
        let scratch = Scratch::new();
        let file = scratch.join("keys.json");
        let keys = EdgeKeys::new(KeyLocation::File(file.clone()), MINUTE);
        assert!(keys.current().await.is_none(), "there are none yet");
        std::fs::write(&file, KEYS).unwrap();
        assert!(keys.current().await.is_none(), "it was just tried");
        advance(MINUTE / PART).await;
        assert!(keys.current().await.is_some());
        std::fs::remove_file(&file).unwrap();
        let all_but_a_minute = MINUTE * (TIMES - 1);
        advance(all_but_a_minute).await;
        assert!(keys.current().await.is_some(), "they still count");
        advance(MINUTE).await;
        assert!(keys.current().await.is_none(), "their time is over");
        std::fs::write(&file, KEYS).unwrap();
        advance(MINUTE / PART).await;
        assert!(keys.current().await.is_some());
    }
}

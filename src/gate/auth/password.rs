//! The owner's password: hashes with argon2id (RFC 9106), one at a time and in blocking threads.

use std::fmt;
use std::sync::Arc;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::lockout::GuessLane;
use gatewren_base::sys::{MappedPages, RandomError, Secret, Zeroizing, random_bytes};
use gatewren_store::vault::StoredPassword;

/// The cost of a hash: the minimum for argon2id in OWASP's Password Storage Cheat Sheet.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const HASH_BYTES: usize = 32;

/// The number of concurrent hashes, which limits the memory.
const AT_ONCE: usize = 1;

/// The limits of waiting and running attempts in each lane; more are refused. The lanes are separate, so a flood in
/// one does not fill another.
const KNOWN_PLACES: usize = 4;
const FRESH_PLACES: usize = 6;
const FAILED_PLACES: usize = 2;

/// The minimum number of characters.
const MIN_CHARS: usize = 10;

/// The maximum number of bytes: far more than people remember, and cheap to hash.
const MAX_BYTES: usize = 1024;

/// Why a password is not acceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordError {
    /// It is easy to guess.
    TooShort,
    /// It is longer than `MAX_BYTES`.
    TooLong,
    /// The kernel returned no random bytes.
    Random(RandomError),
    /// It could not be hashed, because memory is exhausted.
    NotHashed,
}

impl fmt::Display for PasswordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => write!(
                f,
                "the password has fewer than {MIN_CHARS} characters; use a longer one, such as four words"
            ),
            Self::TooLong => write!(f, "the password is longer than {MAX_BYTES} bytes"),
            Self::Random(cause) => cause.fmt(f),
            Self::NotHashed => {
                f.write_str("the password could not be hashed; check the free memory")
            }
        }
    }
}

impl std::error::Error for PasswordError {}

/// The limit of waiting attempts is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasswordQueueFull;

/// Hashes a password for storage. Blocks for as long as that takes.
pub fn hash_password(password: &Secret) -> Result<StoredPassword, PasswordError> {
    let text = password.expose();
    if text.chars().count() < MIN_CHARS {
        return Err(PasswordError::TooShort);
    }
    if text.len() > MAX_BYTES {
        return Err(PasswordError::TooLong);
    }
    let mut stored = fresh()?;
    let hash = argon2id(password, &stored).ok_or(PasswordError::NotHashed)?;
    stored.hash.clone_from(&hash);
    Ok(stored)
}

/// Returns a new salt and the current parameters, without a hash.
pub(super) fn fresh() -> Result<StoredPassword, PasswordError> {
    let salt: [u8; 16] = random_bytes().map_err(PasswordError::Random)?;
    Ok(StoredPassword {
        salt: salt.to_vec(),
        hash: Vec::new(),
        memory_kib: MEMORY_KIB,
        passes: PASSES,
        lanes: LANES,
    })
}

/// Checks passwords.
pub(super) struct Passwords {
    hashing: Arc<Semaphore>,
    known: Queue,
    fresh: Queue,
    failed: Queue,
}

/// The waiting attempts of one lane.
struct Queue {
    places: Semaphore,
    /// Admits one attempt at a time to the hashing.
    head: Semaphore,
}

impl Queue {
    fn new(places: usize) -> Self {
        Self {
            places: Semaphore::new(places),
            head: Semaphore::new(1),
        }
    }
}

/// The turn of one attempt. Dropping it admits the next one of its lane.
pub(super) struct HashingPermit<'a> {
    hashing: &'a Arc<Semaphore>,
    _head: SemaphorePermit<'a>,
    _place: SemaphorePermit<'a>,
}

impl Passwords {
    pub(super) fn new() -> Self {
        Self {
            hashing: Arc::new(Semaphore::new(AT_ONCE)),
            known: Queue::new(KNOWN_PLACES),
            fresh: Queue::new(FRESH_PLACES),
            failed: Queue::new(FAILED_PLACES),
        }
    }

    /// Waits for a turn in this lane.
    pub(super) async fn turn(
        &self,
        lane: GuessLane,
    ) -> Result<HashingPermit<'_>, PasswordQueueFull> {
        let queue = match lane {
            GuessLane::Known => &self.known,
            GuessLane::Fresh => &self.fresh,
            GuessLane::Failed => &self.failed,
        };
        let place = queue.places.try_acquire().map_err(|_| PasswordQueueFull)?;
        let head = queue.head.acquire().await.map_err(|_| PasswordQueueFull)?;
        Ok(HashingPermit {
            hashing: &self.hashing,
            _head: head,
            _place: place,
        })
    }
}

impl HashingPermit<'_> {
    /// Hashes a new password.
    pub(super) async fn hash(
        self,
        password: Secret,
    ) -> Result<Result<StoredPassword, PasswordError>, PasswordQueueFull> {
        self.work(move || hash_password(&password)).await
    }

    /// Returns whether the password is right. If none is stored, the answer takes the same time.
    pub(super) async fn is(
        self,
        password: Secret,
        stored: Option<StoredPassword>,
    ) -> Result<bool, PasswordQueueFull> {
        let look = move || {
            let is_set = stored.is_some();
            matches_password(&password, &stored.unwrap_or_else(unmatchable_password)) && is_set
        };
        self.work(look).await
    }

    /// Runs work that needs as much memory as a hash in a blocking thread.
    pub(super) async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordQueueFull> {
        let hashing = Arc::clone(self.hashing).acquire_owned().await;
        let hashing = hashing.map_err(|_| PasswordQueueFull)?;
        let done = tokio::task::spawn_blocking(move || {
            // The permit moves into the work, because the waiting future may be dropped.
            let _hashing = hashing;
            work()
        });
        done.await.map_err(|_| PasswordQueueFull)
    }
}

fn matches_password(password: &Secret, stored: &StoredPassword) -> bool {
    if password.expose().len() > MAX_BYTES {
        return false;
    }
    let hash = argon2id(password, stored);
    // Compared in constant time, so that the duration reveals nothing.
    hash.is_some_and(|hash| hash.len() == HASH_BYTES && equal(&hash, &stored.hash))
}

fn equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |bits, (a, b)| bits | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differing) == 0
}

/// Hashes a password with the salt and the parameters of `stored`: 32 bytes. `None` if memory is exhausted.
pub(super) fn argon2id(password: &Secret, stored: &StoredPassword) -> Option<Zeroizing<Vec<u8>>> {
    let (m, t, p) = (stored.memory_kib, stored.passes, stored.lanes);
    let params = Params::new(m, t, p, Some(HASH_BYTES)).ok()?;
    // Not from the allocator, which would keep the memory until the next sign-in.
    let memory = MappedPages::filled(params.block_count(), Block::new())?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let mut hash = Zeroizing::new(vec![0; HASH_BYTES]);
    let text = password.expose().as_bytes();
    argon2
        .hash_password_into_with_memory(text, &stored.salt, &mut hash, memory)
        .ok()?;
    Some(hash)
}

/// Returns a stored password that no password matches.
fn unmatchable_password() -> StoredPassword {
    StoredPassword {
        salt: vec![0; 16],
        hash: vec![0; HASH_BYTES],
        memory_kib: MEMORY_KIB,
        passes: PASSES,
        lanes: LANES,
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    use super::*;

    fn stored_password() -> StoredPassword {
        hash_password(&Secret::new("correct horse battery")).unwrap()
    }

    #[tokio::test]
    async fn only_the_whole_password_is_it() {
        let passwords = Passwords::new();
        let stored = stored_password();
        let is = async |text: &str| {
            let kept = Some(stored.clone());
            let turn = passwords.turn(GuessLane::Fresh).await.unwrap();
            turn.is(Secret::new(text), kept).await.unwrap()
        };
        assert!(is("correct horse battery").await);
        for wrong in [
            "",
            "correct horse batter",
            "correct horse battery ",
            "Correct horse battery",
        ] {
            assert!(!is(wrong).await, "{wrong:?}");
        }
        assert!(!is(&"x".repeat(MAX_BYTES + 1)).await);
        let turn = passwords.turn(GuessLane::Fresh).await.unwrap();
        assert!(!turn.is(Secret::new("x"), None).await.unwrap());
        assert_ne!(stored_password(), stored, "each has its own salt");
    }

    async fn is_pending(waiting: &mut Pin<Box<impl Future>>) -> bool {
        let polled = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending()));
        polled.await
    }

    #[tokio::test]
    async fn more_than_may_wait_are_refused_and_no_lane_fills_another() {
        let passwords = Passwords::new();
        let mut held = Vec::new();
        for (lane, places) in [
            (GuessLane::Fresh, FRESH_PLACES),
            (GuessLane::Failed, FAILED_PLACES),
        ] {
            held.push(passwords.turn(lane).await.unwrap());
            let wait = || Box::pin(passwords.turn(lane));
            let mut waiting: Vec<_> = (1..places).map(|_| wait()).collect();
            for one in &mut waiting {
                assert!(is_pending(one).await);
            }
            assert_eq!(passwords.turn(lane).await.err(), Some(PasswordQueueFull));
            waiting.pop();
            assert!(is_pending(&mut wait()).await, "there is room again");
        }
        let turn = passwords.turn(GuessLane::Known).await.unwrap();
        assert!(!turn.is(Secret::new("x"), None).await.unwrap());
    }

    #[test]
    fn what_is_easily_guessed_is_refused() {
        let refused = |text: &str| hash_password(&Secret::new(text)).unwrap_err();
        assert_eq!(refused("ninechars"), PasswordError::TooShort);
        assert_eq!(refused(&"x".repeat(1025)), PasswordError::TooLong);
    }

    /// From the tests of the reference implementation.
    #[test]
    fn it_is_argon2id_as_others_know_it() {
        let stored = StoredPassword {
            salt: b"somesalt".to_vec(),
            hash: Vec::new(),
            memory_kib: 65_536,
            passes: 2,
            lanes: 1,
        };
        let hash = argon2id(&Secret::new("password"), &stored).unwrap();
        let known = u128::from_str_radix("09316115d5cf24ed5a15a31a3ba326e5", 16).unwrap();
        let rest = u128::from_str_radix("cf32edc24702987c02b6566f61913cf7", 16).unwrap();
        assert_eq!(*hash, [known.to_be_bytes(), rest.to_be_bytes()].concat());
    }
}

//! Limits guesses at the owner's password. Only a guess that is checked is counted.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::lockout::{GuessLane, GuessSource, Lockout, left_together, seconds};
use super::login_error::{LoginError, SetUpError};
use super::password::{HashingPermit, Passwords};
use gatewren_base::sys::{Secret, now_ms};
use gatewren_store::vault::{Login, StoredPassword, Vault};

/// Checks passwords and the code for the first password, within the limits of guesses.
pub(super) struct PasswordGuesses {
    vault: Vault,
    passwords: Passwords,
    lockout: Lockout,
}

impl PasswordGuesses {
    pub(super) fn new(vault: Vault) -> Self {
        Self {
            vault,
            passwords: Passwords::new(),
            lockout: Lockout::default(),
        }
    }

    /// Returns the stored password if `password` matches, `None` if it does not. A guesser without failed attempts
    /// may wait here for its turn.
    ///
    /// # Errors
    /// `Later` if this guesser, or all of them together, made too many attempts. `Busy` if too many are waiting.
    /// Neither is counted as a guess.
    pub(super) async fn try_password(
        &self,
        password: &str,
        guesser: GuessSource,
    ) -> Result<Option<StoredPassword>, LoginError> {
        let lane = self.lane(guesser)?;
        // A guesser that is locked out takes no place in a queue.
        let now = Instant::now();
        self.lockout
            .check(guesser, now)
            .map_err(LoginError::Later)?;
        if lane == GuessLane::Failed {
            self.check_together(lane)?;
        }
        let turn = self.turn(lane).await?;
        // The guesser may have failed while it waited.
        let lane = self.lane(guesser)?;
        let mut left = self.left_together(lane)?;
        while lane == GuessLane::Fresh && !left.is_zero() {
            sleep(left).await;
            left = self.left_together(lane)?;
        }
        self.check_together(lane)?;
        self.begin(guesser).await?;
        let stored = self.vault.owner().password()?;
        let is_it = turn.is(Secret::new(password), stored.clone()).await;
        let is_it = is_it.map_err(|_| LoginError::Busy)?;
        Ok(stored.filter(|_| is_it))
    }

    /// Returns whether this is the SHA-256 of the code for the first password. If there is no code, the attempt is
    /// only counted for the address.
    pub(super) async fn try_code(
        &self,
        code_sha256: [u8; 32],
        address: IpAddr,
    ) -> Result<bool, LoginError> {
        let guesser = GuessSource {
            address,
            device: None,
        };
        let lane = self.lane(guesser)?;
        if !self.vault.owner().has_code()? {
            let begun = self.lockout.begin(guesser, Instant::now());
            return begun.map(|()| false).map_err(LoginError::Later);
        }
        self.check_together(lane)?;
        self.begin(guesser).await?;
        Ok(self.vault.owner().is_code(code_sha256)?)
    }

    /// Hashes a new password. The caller has checked the one-time code.
    pub(super) async fn hash_new(&self, password: &str) -> Result<StoredPassword, SetUpError> {
        let turn = self.turn(GuessLane::Known).await?;
        let made = turn.hash(Secret::new(password)).await;
        made.map_err(|_| LoginError::Busy)?
            .map_err(SetUpError::Password)
    }

    /// Runs work of the owner that needs as much memory as a hash, in its turn.
    pub(super) async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LoginError> {
        let turn = self.turn(GuessLane::Known).await?;
        turn.work(work).await.map_err(|_| LoginError::Busy)
    }

    /// Resets the guesses after a correct one.
    pub(super) async fn forget(&self, guesser: GuessSource) -> Result<(), LoginError> {
        self.lockout.forget(guesser);
        Ok(self.vault.owner().forget_guesses().await?)
    }

    fn lane(&self, guesser: GuessSource) -> Result<GuessLane, LoginError> {
        Ok(
            if guesser.device.is_some() || self.is_familiar(guesser.address)? {
                GuessLane::Known
            } else if self.lockout.has_failed(guesser.address, Instant::now()) {
                GuessLane::Failed
            } else {
                GuessLane::Fresh
            },
        )
    }

    async fn turn(&self, lane: GuessLane) -> Result<HashingPermit<'_>, LoginError> {
        let turn = self.passwords.turn(lane).await;
        turn.map_err(|_| LoginError::Busy)
    }

    fn check_together(&self, lane: GuessLane) -> Result<(), LoginError> {
        match self.left_together(lane)? {
            Duration::ZERO => Ok(()),
            left => Err(LoginError::Later(seconds(left))),
        }
    }

    fn left_together(&self, lane: GuessLane) -> Result<Duration, LoginError> {
        let counted = self.vault.owner().guesses()?;
        Ok(left_together(counted, lane, now_ms()))
    }

    /// Counts a guess before it is checked.
    async fn begin(&self, guesser: GuessSource) -> Result<(), LoginError> {
        let begun = self.lockout.begin(guesser, Instant::now());
        begun.map_err(LoginError::Later)?;
        Ok(self.vault.owner().note_guess(now_ms()).await?)
    }

    /// Returns whether the owner has a login from this address.
    fn is_familiar(&self, address: IpAddr) -> Result<bool, LoginError> {
        let address = address.to_string();
        let logins = self.vault.logins().list()?;
        let is_there = |login: &Login| login.agent.is_none() && login.address == address;
        Ok(logins.iter().any(is_there))
    }
}

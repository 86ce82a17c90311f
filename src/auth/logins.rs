//! Signing in and out: a password or a token for a cookie.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::code::Code;
use super::lockout::{Lockout, together};
use super::owner_key::make_owner_key;
use super::password::{PasswordError, Passwords};
use super::token::Token;
use crate::config::Live;
use crate::sys::{Secret, now_ms};
use crate::vault::{
    Deed, KeyChange, Login, NewLogin, OWNER, Stay, StoredPassword, Undertaking, Vault, VaultError,
};

/// How exactly it is known when a login was last used.
const TOUCH_EVERY_MS: u64 = 60_000;

/// So many logins are known by when they were used; at it all are forgotten, and written down once more.
const MAX_TOUCHED: usize = 4096;

/// Who waits for a login's end looks again so often at least: time ends it too, and nobody hears of that.
const LOOK: Duration = Duration::from_secs(30);

/// For so long after the password was typed, what widens access is done without asking for it again.
const CONFIRMED_MS: u64 = 10 * 60_000;

/// Why nobody is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginError {
    /// It is not the password, or none was set.
    Wrong,
    /// There were too many attempts; in so many seconds there may be one.
    Later(u64),
    /// Too many are being looked at.
    Busy,
    /// The vault cannot be asked; the log says why.
    Unavailable,
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wrong => {
                "this is not the owner's password; root sets it with gatewren owner set-password"
            }
            Self::Later(_) => "there were too many attempts to sign in; wait, then try again",
            Self::Busy => "too many sign in at once; try again soon",
            Self::Unavailable => "nobody can sign in at the moment; try again soon",
        })
    }
}

impl std::error::Error for LoginError {}

impl From<VaultError> for LoginError {
    fn from(cause: VaultError) -> Self {
        tracing::error!("signing in failed: {cause}");
        Self::Unavailable
    }
}

/// Why no password was set with a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetUpError {
    /// It is not the code, its time is over, or it was used.
    Code,
    /// This cannot be the password.
    Password(PasswordError),
    /// Nobody is let in.
    Login(LoginError),
}

impl fmt::Display for SetUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code => f.write_str(
                "this is not the code, or it was used or is over; root makes a new one with gatewren owner setup",
            ),
            Self::Password(cause) => cause.fmt(f),
            Self::Login(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for SetUpError {}

impl From<LoginError> for SetUpError {
    fn from(cause: LoginError) -> Self {
        Self::Login(cause)
    }
}

/// A login as it is known again by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LoginKey([u8; 32]);

/// Who holds a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedIn {
    /// The owner.
    Owner,
    /// The agent whose token has this SHA-256, if it still has.
    Agent([u8; 32]),
}

/// Who is signed in. The vault is asked each time: a login that another process ended is over at once.
pub struct Logins {
    vault: Vault,
    live: Live,
    passwords: Passwords,
    lockout: Lockout,
    /// When each was last written down as used.
    touched: Mutex<HashMap<LoginKey, u64>>,
}

impl Logins {
    /// Logins that last as long as the settings say.
    pub fn new(vault: Vault, live: Live) -> Self {
        Self {
            vault,
            live,
            passwords: Passwords::new(),
            lockout: Lockout::default(),
            touched: Mutex::default(),
        }
    }

    /// Exchanges the owner's password for a cookie. `from` is what counts as one stranger, such as an address.
    pub async fn sign_in_owner(&self, password: &str, from: IpAddr) -> Result<Secret, LoginError> {
        self.check_password(password, from).await?;
        self.sign_in(None, OWNER, from).await
    }

    /// Whether the owner has typed the password for this login within the last 10 minutes.
    pub fn has_confirmed(&self, key: LoginKey) -> Result<bool, LoginError> {
        let login = self.look(key)?.filter(|login| login.agent.is_none());
        let age = login.and_then(|login| now_ms().checked_sub(login.password_ms));
        Ok(age.is_some_and(|age| age < CONFIRMED_MS))
    }

    /// Checks the password of the owner who is signed in so; right, it counts for 10 minutes. A wrong one counts as a
    /// guess.
    pub async fn confirm(
        &self,
        key: LoginKey,
        password: &str,
        from: IpAddr,
    ) -> Result<(), LoginError> {
        self.check_password(password, from).await?;
        let noted = self.vault.logins().note_password(key.0).await?;
        noted.then_some(()).ok_or(LoginError::Wrong)
    }

    async fn check_password(&self, password: &str, from: IpAddr) -> Result<(), LoginError> {
        let begun = self.lockout.begin(from, Instant::now());
        begun.map_err(LoginError::Later)?;
        let now = now_ms();
        // Others who guess do not keep the owner from where it is signed in already.
        if !self.is_familiar(from)? {
            together(self.vault.owner().guesses()?, now).map_err(LoginError::Later)?;
        }
        self.vault.owner().note_guess(now).await?;
        let stored = self.vault.owner().password()?;
        let is_it = self
            .passwords
            .is(Secret::new(password), stored.clone())
            .await;
        if !is_it.map_err(|_| LoginError::Busy)? {
            tracing::warn!(%from, "somebody tried to sign in as the owner");
            return Err(LoginError::Wrong);
        }
        self.lockout.forget(from);
        self.vault.owner().forget_guesses().await?;
        if let Some(stored) = stored {
            self.make_key(password, stored).await;
        }
        Ok(())
    }

    /// Makes the owner's key where the password was set before there were keys: this is when the password is known.
    async fn make_key(&self, password: &str, stored: StoredPassword) {
        match self.vault.owner().key() {
            Ok(None) => {}
            Ok(Some(_)) => return,
            Err(cause) => return tracing::error!("the owner's key was not looked for: {cause}"),
        }
        let password = Secret::new(password);
        let made = self.passwords.work(move || make_owner_key(&password)).await;
        let Ok(made) = made else {
            // The next to sign in makes it.
            return;
        };
        let kept = match made {
            Ok(key) => self.vault.owner().add_key(key, stored).await,
            Err(cause) => return tracing::error!("the owner's key was not made: {cause}"),
        };
        if let Err(cause) = kept {
            tracing::error!("the owner's key was not kept: {cause}");
        }
    }

    /// Exchanges the token of the agent with this id, which was found good, for a cookie.
    pub async fn sign_in_agent(
        &self,
        agent: &str,
        token: &str,
        from: IpAddr,
    ) -> Result<Secret, LoginError> {
        let hash = Token::hash(token).ok_or(LoginError::Wrong)?;
        self.sign_in(Some(*hash.as_bytes()), agent, from).await
    }

    /// Exchanges the code for the first password, which it sets, for a cookie.
    pub async fn set_up(
        &self,
        code: &str,
        password: &str,
        from: IpAddr,
    ) -> Result<Secret, SetUpError> {
        let begun = self.lockout.begin(from, Instant::now());
        begun.map_err(LoginError::Later)?;
        let now = now_ms();
        let owner = self.vault.owner();
        let guesses = owner.guesses().map_err(LoginError::from)?;
        together(guesses, now).map_err(LoginError::Later)?;
        owner.note_guess(now).await.map_err(LoginError::from)?;
        let code = Code::hash(code);
        if !owner.is_code(code).map_err(LoginError::from)? {
            tracing::warn!(%from, "somebody tried to set the owner's password without its code");
            return Err(SetUpError::Code);
        }
        let made = self.passwords.made(Secret::new(password)).await;
        let stored = made
            .map_err(|_| LoginError::Busy)?
            .map_err(SetUpError::Password)?;
        let with = Secret::new(password);
        let key = self.passwords.work(move || make_owner_key(&with)).await;
        let key = key
            .map_err(|_| LoginError::Busy)?
            .map_err(SetUpError::Password)?;
        let begun = self.undertake("owner set-password", OWNER, from).await?;
        let set = owner
            .set_password_by_code(code, stored, KeyChange::New(key))
            .await;
        let word = match &set {
            Ok(true) => "ok",
            Ok(false) => "refused",
            Err(_) => "failed",
        };
        let done = self.vault.audit().done(begun, word);
        done.map_err(LoginError::from)?;
        if !set.map_err(LoginError::from)? {
            return Err(SetUpError::Code);
        }
        self.lockout.forget(from);
        Ok(self.sign_in(None, OWNER, from).await?)
    }

    /// The owner's login that a cookie stands for; none when it is over, an agent's, or nobody's.
    pub fn owner_of(&self, cookie: &str) -> Result<Option<(LoginKey, Login)>, LoginError> {
        let Some(hash) = Token::hash(cookie) else {
            return Ok(None);
        };
        let key = LoginKey(*hash.as_bytes());
        let found = self.look(key)?;
        Ok(found
            .filter(|login| login.agent.is_none())
            .map(|login| (key, login)))
    }

    async fn sign_in(
        &self,
        agent: Option<[u8; 32]>,
        who: &str,
        from: IpAddr,
    ) -> Result<Secret, LoginError> {
        let (cookie, hash) = Token::mint().map_err(VaultError::from)?;
        let login = NewLogin {
            token_sha256: *hash.as_bytes(),
            agent,
            address: from.to_string(),
        };
        let begun = self.undertake("login", who, from).await?;
        let added = self.vault.logins().add(login, self.stay()).await;
        let word = if added.is_ok() { "ok" } else { "failed" };
        self.vault.audit().done(begun, word)?;
        tracing::info!(%from, login = added?.id, "{who} has signed in");
        Ok(cookie)
    }

    /// A cookie is lasting access, so it stands in the audit before it is given. Guesses do not: whoever guesses could
    /// fill it; they are counted, and the log has them.
    async fn undertake(
        &self,
        what: &str,
        who: &str,
        from: IpAddr,
    ) -> Result<Undertaking, LoginError> {
        let deed = Deed {
            by: who,
            from: &from.to_string(),
            what,
            arguments: &json!({}),
            target: None,
            change: None,
        };
        Ok(self.vault.audit().undertake(deed).await?)
    }

    /// Who holds this cookie, and what it is known again by; none when it is over, or nobody's.
    pub fn find(&self, cookie: &str) -> Result<Option<(LoginKey, SignedIn)>, LoginError> {
        let Some(hash) = Token::hash(cookie) else {
            return Ok(None);
        };
        let key = LoginKey(*hash.as_bytes());
        let found = self.look(key)?;
        Ok(found.map(|login| {
            let who = login.agent.map_or(SignedIn::Owner, SignedIn::Agent);
            (key, who)
        }))
    }

    /// Signs out whoever holds this cookie.
    pub async fn sign_out(&self, cookie: &str) -> Result<(), LoginError> {
        if let Some(hash) = Token::hash(cookie) {
            self.vault.logins().end(*hash.as_bytes()).await?;
        }
        Ok(())
    }

    /// Whether a login still counts, as far as can be said.
    pub fn is_open(&self, key: LoginKey) -> bool {
        matches!(self.look(key), Ok(Some(_)))
    }

    /// Waits until a login is over. What is kept open for it counts as use.
    pub async fn ended(&self, key: LoginKey) {
        let (mut changes, mut live) = (self.vault.agents().changes(), self.live.clone());
        loop {
            changes.mark_unchanged();
            live.mark_unchanged();
            // A vault that cannot be asked ends nothing.
            if matches!(self.look(key), Ok(None)) {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = live.changed() => {}
                () = sleep(LOOK) => {}
            }
        }
    }

    /// How long a login lasts at most.
    pub fn most(&self) -> Duration {
        self.stay().most
    }

    fn stay(&self) -> Stay {
        self.live.read(|settings| Stay {
            idle: settings.access.login_idle,
            most: settings.access.login_max,
        })
    }

    fn look(&self, key: LoginKey) -> Result<Option<Login>, LoginError> {
        let found = self.vault.logins().find(key.0, self.stay())?;
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        match &found {
            None => drop(touched.remove(&key)),
            Some(login) => {
                let now = now_ms();
                if touched.len() >= MAX_TOUCHED {
                    touched.clear();
                }
                let known = touched.entry(key).or_insert(login.used_ms);
                if now >= known.saturating_add(TOUCH_EVERY_MS) {
                    *known = now;
                    self.vault.logins().touch(key.0, now);
                }
            }
        }
        Ok(found)
    }

    /// Whether the owner is signed in from there.
    fn is_familiar(&self, from: IpAddr) -> Result<bool, LoginError> {
        let from = from.to_string();
        let logins = self.vault.logins().list()?;
        Ok(logins
            .iter()
            .any(|login| login.agent.is_none() && login.address == from))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use tokio::time::timeout;

    use super::super::code::make_code;
    use super::super::owner_key::open_owner_key;
    use super::super::password::hash_password;

    use super::*;
    use crate::config::Settings;
    use crate::sys::Scratch;

    const PASSWORD: &str = "four words of mine";

    fn here() -> IpAddr {
        "192.0.2.1".parse().unwrap()
    }

    async fn house(scratch: &Scratch) -> Logins {
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let password = hash_password(&Secret::new(PASSWORD)).unwrap();
        let key = KeyChange::New(make_owner_key(&Secret::new(PASSWORD)).unwrap());
        vault.owner().set_password(password, key).await.unwrap();
        Logins::new(vault, Settings::default().into())
    }

    async fn sign_in(logins: &Logins, password: &str, from: &str) -> Result<Secret, LoginError> {
        let from = from.parse().unwrap();
        logins.sign_in_owner(password, from).await
    }

    #[tokio::test]
    async fn a_cookie_is_good_until_it_is_signed_out() {
        let scratch = Scratch::new();
        let logins = house(&scratch).await;
        let cookie = sign_in(&logins, PASSWORD, "192.0.2.1").await.unwrap();
        let (key, who) = logins.find(cookie.expose()).unwrap().unwrap();
        assert_eq!(who, SignedIn::Owner);
        for nobody in ["", "gw_x", Token::mint().unwrap().0.expose()] {
            assert_eq!(logins.find(nobody).unwrap(), None);
        }
        let other = Vault::open(&scratch.join("vault.db")).unwrap();
        let ended = timeout(Duration::from_mins(2), logins.ended(key));
        let others = other.logins();
        let (ended, out) = tokio::join!(ended, others.end_owners());
        assert_eq!((ended, out.unwrap()), (Ok(()), 1), "by another process");
        assert_eq!(logins.find(cookie.expose()).unwrap(), None);
    }

    #[tokio::test]
    async fn guesses_are_slowed_down_also_over_a_restart_but_not_where_the_owner_is() {
        let scratch = Scratch::new();
        let logins = house(&scratch).await;
        sign_in(&logins, PASSWORD, "192.0.2.1").await.unwrap();
        for _ in 0..5 {
            let wrong = sign_in(&logins, "wrong", "192.0.2.9").await;
            assert_eq!(wrong.unwrap_err(), LoginError::Wrong);
        }
        let locked = sign_in(&logins, PASSWORD, "192.0.2.9").await;
        assert!(matches!(locked, Err(LoginError::Later(_))), "{locked:?}");
        // A crowd, each from its own address; one after another would take as long as their hashes.
        for _ in 0..50 {
            logins.vault.owner().note_guess(now_ms()).await.unwrap();
        }
        drop(logins);
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let logins = Logins::new(vault, Settings::default().into());
        let locked = sign_in(&logins, PASSWORD, "192.0.2.10").await;
        assert!(matches!(locked, Err(LoginError::Later(_))), "{locked:?}");
        sign_in(&logins, PASSWORD, "192.0.2.1").await.unwrap();
        sign_in(&logins, PASSWORD, "192.0.2.10").await.unwrap();
    }

    #[tokio::test]
    async fn nobody_signs_in_where_no_password_was_set() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let logins = Logins::new(vault, Settings::default().into());
        let refused = logins.sign_in_owner("", here()).await;
        assert_eq!(refused.unwrap_err(), LoginError::Wrong);
    }

    #[tokio::test]
    async fn the_owner_gets_a_key_with_the_first_password_or_at_the_next_sign_in() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let logins = Logins::new(vault.clone(), Settings::default().into());
        let code = make_code(&vault).await.unwrap();
        assert_eq!(vault.owner().key().unwrap(), None);
        logins
            .set_up(code.expose(), PASSWORD, here())
            .await
            .unwrap();
        let first = vault.owner().key().unwrap().unwrap();
        assert!(open_owner_key(&first, &Secret::new(PASSWORD)).is_ok());

        // As on a box that had its password before there were keys.
        let older = Connection::open(&path).unwrap();
        older.execute_batch("DELETE FROM owner_key").unwrap();
        let wrong = sign_in(&logins, "wrong", "192.0.2.1").await;
        assert!(wrong.is_err());
        assert_eq!(vault.owner().key().unwrap(), None);
        sign_in(&logins, PASSWORD, "192.0.2.1").await.unwrap();
        let made = vault.owner().key().unwrap().unwrap();
        assert!(open_owner_key(&made, &Secret::new(PASSWORD)).is_ok());
        sign_in(&logins, PASSWORD, "192.0.2.1").await.unwrap();
        assert_eq!(vault.owner().key().unwrap(), Some(made), "and it stays");
    }
}

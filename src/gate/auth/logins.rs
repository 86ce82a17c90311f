//! Signing in and out: exchanges a password or a token for a cookie.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::device::{DeviceId, DeviceKey};
use super::guesses::PasswordGuesses;
use super::lockout::GuessSource;
use super::login_error::{LoginError, SetUpError};
use super::one_time_code::SetupCode;
use super::owner_key::make_owner_key;
use super::token::Token;
use gatewren_base::config::LiveSettings;
use gatewren_base::sys::{Secret, lock, now_ms};
use gatewren_store::vault::{
    KeyChange, Login, LoginLifetime, NewLogin, OWNER, OwnerAction, RecordedAction, StoredPassword,
    Vault, VaultError,
};

/// The accuracy of a login's last use.
const TOUCH_EVERY_MS: u64 = 60_000;

/// The limit of remembered times of use. At the limit all are cleared, and each login's use is written once more.
const MAX_LAST_USES: usize = 4096;

/// The maximum interval of checks while waiting for a login's end: expiry causes no event.
const LOOK: Duration = Duration::from_secs(30);

/// How long a typed password allows actions that widen access without typing it again.
const CONFIRMED_MS: u64 = 10 * 60_000;

/// An attempt to sign in as the owner.
#[derive(Clone, Copy)]
pub struct PasswordAttempt<'a> {
    /// The password in the request.
    pub password: &'a str,
    /// The address that counts as one source.
    pub from: IpAddr,
    /// The device cookie in the request. An invalid one counts as none.
    pub device: Option<&'a str>,
}

/// The cookies of the owner's browser.
pub struct OwnerCookies {
    /// The session.
    pub session: Secret,
    /// Identifies the browser as one of the owner's. It grants no access: with it, guesses from elsewhere do not
    /// delay a sign-in.
    pub device: Secret,
}

/// The id of a login: the SHA-256 of its cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LoginKey([u8; 32]);

/// The holder of a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginHolder {
    /// The owner.
    Owner,
    /// The agent that has the token with this SHA-256, unless the token was replaced.
    Agent([u8; 32]),
}

/// The logins. Each call reads the vault, so a login that another process ended is invalid at once.
pub struct Logins {
    vault: Vault,
    live: LiveSettings,
    guesses: PasswordGuesses,
    /// When the use of each login was last written.
    last_uses: Mutex<HashMap<LoginKey, u64>>,
}

impl Logins {
    /// Uses the lifetime of logins from the settings.
    pub fn new(vault: Vault, live: LiveSettings) -> Self {
        Self {
            guesses: PasswordGuesses::new(vault.clone()),
            vault,
            live,
            last_uses: Mutex::default(),
        }
    }

    /// Exchanges the owner's password for cookies.
    pub async fn sign_in_owner(
        &self,
        attempt: PasswordAttempt<'_>,
    ) -> Result<OwnerCookies, LoginError> {
        let from = attempt.from;
        let device = self.device(attempt.device).await?;
        let guesser = GuessSource {
            address: from,
            device,
        };
        self.check_password(attempt.password, guesser).await?;
        self.owner_cookies(guesser).await
    }

    /// Returns whether the owner has typed the password for this login within the last 10 minutes.
    pub fn has_confirmed(&self, key: LoginKey) -> Result<bool, LoginError> {
        let login = self.find_login(key)?.filter(|login| login.agent.is_none());
        let age = login.and_then(|login| now_ms().checked_sub(login.password_ms));
        Ok(age.is_some_and(|age| age < CONFIRMED_MS))
    }

    /// Checks the owner's password for this login. The right one counts for 10 minutes. A wrong one counts as a
    /// guess of this login, so guesses from elsewhere do not delay it.
    pub async fn confirm(
        &self,
        key: LoginKey,
        password: &str,
        from: IpAddr,
    ) -> Result<(), LoginError> {
        let guesser = GuessSource {
            address: from,
            device: Some(DeviceId::of_login(&key.0)),
        };
        self.check_password(password, guesser).await?;
        let noted = self.vault.logins().note_password(key.0).await?;
        noted.then_some(()).ok_or(LoginError::Wrong)
    }

    async fn check_password(&self, password: &str, guesser: GuessSource) -> Result<(), LoginError> {
        let Some(stored) = self.guesses.try_password(password, guesser).await? else {
            tracing::warn!(from = %guesser.address, "sign-in as the owner failed: wrong password");
            return Err(LoginError::Wrong);
        };
        self.guesses.forget(guesser).await?;
        self.make_key(password, stored).await;
        Ok(())
    }

    /// Makes the owner's key if the password was set before there were keys. This needs the password, which is
    /// known only now.
    async fn make_key(&self, password: &str, stored: StoredPassword) {
        match self.vault.owner().key() {
            Ok(None) => {}
            Ok(Some(_)) => return,
            Err(cause) => return tracing::error!("looking up the owner's key failed: {cause}"),
        }
        let password = Secret::new(password);
        let made = self
            .guesses
            .in_turn(move || make_owner_key(&password))
            .await;
        let Ok(made) = made else {
            // The next sign-in makes it.
            return;
        };
        let kept = match made {
            Ok(key) => self.vault.owner().add_key(key, stored).await,
            Err(cause) => return tracing::error!("creating the owner's key failed: {cause}"),
        };
        if let Err(cause) = kept {
            tracing::error!("storing the owner's key failed: {cause}");
        }
    }

    /// Exchanges the valid token of the agent with this id for a cookie.
    pub async fn sign_in_agent(
        &self,
        agent: &str,
        token: &str,
        from: IpAddr,
    ) -> Result<Secret, LoginError> {
        let hash = Token::hash(token).ok_or(LoginError::Wrong)?;
        self.sign_in(Some(*hash.as_bytes()), agent, from).await
    }

    /// Sets the first password with the one-time code, and returns cookies.
    pub async fn set_up(
        &self,
        code: &str,
        password: &str,
        from: IpAddr,
    ) -> Result<OwnerCookies, SetUpError> {
        let code = SetupCode::hash(code);
        if !self.guesses.try_code(code, from).await? {
            tracing::warn!(%from, "setting the owner's password failed: wrong code");
            return Err(SetUpError::Code);
        }
        let stored = self.guesses.hash_new(password).await?;
        let with = Secret::new(password);
        let key = self.guesses.in_turn(move || make_owner_key(&with)).await?;
        let key = KeyChange::New(key.map_err(SetUpError::Password)?);
        let begun = self
            .record_action("owner set-password", OWNER, from)
            .await?;
        let owner = self.vault.owner();
        let set = owner.set_password_by_code(code, stored, key).await;
        let word = match &set {
            Ok(true) => "ok",
            Ok(false) => "refused",
            Err(_) => "failed",
        };
        let done = self.vault.audit().record_outcome(begun, word);
        done.map_err(LoginError::from)?;
        if !set.map_err(LoginError::from)? {
            return Err(SetUpError::Code);
        }
        let guesser = GuessSource {
            address: from,
            device: None,
        };
        self.guesses.forget(guesser).await?;
        Ok(self.owner_cookies(guesser).await?)
    }

    /// Makes a session and a device cookie. A browser that the owner used before keeps its device id.
    async fn owner_cookies(&self, guesser: GuessSource) -> Result<OwnerCookies, LoginError> {
        let key = self.device_key().await?;
        let device = key.mint(guesser.device, now_ms() / 1000);
        Ok(OwnerCookies {
            session: self.sign_in(None, OWNER, guesser.address).await?,
            device: device.map_err(VaultError::from)?,
        })
    }

    async fn device(&self, cookie: Option<&str>) -> Result<Option<DeviceId>, LoginError> {
        let Some(cookie) = cookie else {
            return Ok(None);
        };
        let key = self.device_key().await?;
        Ok(key.verify(cookie, now_ms() / 1000))
    }

    async fn device_key(&self) -> Result<DeviceKey, LoginError> {
        let key = self.vault.key(DeviceKey::NAME).await?;
        Ok(DeviceKey::new(&key))
    }

    /// Returns the owner's login of a cookie. `None` if it is unknown, has expired, or belongs to an agent.
    pub fn owner_of(&self, cookie: &str) -> Result<Option<(LoginKey, Login)>, LoginError> {
        let Some(hash) = Token::hash(cookie) else {
            return Ok(None);
        };
        let key = LoginKey(*hash.as_bytes());
        let found = self.find_login(key)?;
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
        let begun = self.record_action("login", who, from).await?;
        let added = self.vault.logins().add(login, self.stay()).await;
        let word = if added.is_ok() { "ok" } else { "failed" };
        self.vault.audit().record_outcome(begun, word)?;
        tracing::info!(%from, login = added?.id, "{who} has signed in");
        Ok(cookie)
    }

    /// Records the action in the audit first, because a cookie is lasting access. Guesses are not recorded, because
    /// an attacker could fill the audit with them. They are counted and logged.
    async fn record_action(
        &self,
        what: &str,
        who: &str,
        from: IpAddr,
    ) -> Result<RecordedAction, LoginError> {
        let action = OwnerAction {
            by: who,
            from: &from.to_string(),
            what,
            arguments: &json!({}),
            target: None,
            change: None,
        };
        Ok(self.vault.audit().begin_action(action).await?)
    }

    /// Returns the id and the holder of the login with this cookie. `None` if it is unknown or has expired.
    pub fn find(&self, cookie: &str) -> Result<Option<(LoginKey, LoginHolder)>, LoginError> {
        let Some(hash) = Token::hash(cookie) else {
            return Ok(None);
        };
        let key = LoginKey(*hash.as_bytes());
        let found = self.find_login(key)?;
        Ok(found.map(|login| {
            let who = login.agent.map_or(LoginHolder::Owner, LoginHolder::Agent);
            (key, who)
        }))
    }

    /// Ends the login with this cookie.
    pub async fn sign_out(&self, cookie: &str) -> Result<(), LoginError> {
        if let Some(hash) = Token::hash(cookie) {
            self.vault.logins().end(*hash.as_bytes()).await?;
        }
        Ok(())
    }

    /// Returns whether a login is known to be valid.
    pub fn is_open(&self, key: LoginKey) -> bool {
        matches!(self.find_login(key), Ok(Some(_)))
    }

    /// Waits for the end of a login. The waiting itself counts as use.
    pub async fn wait_for_end(&self, key: LoginKey) {
        let (mut changes, mut live) = (self.vault.agents().changes(), self.live.clone());
        loop {
            changes.mark_unchanged();
            live.mark_unchanged();
            // If the vault cannot be read, the login is not treated as ended.
            if matches!(self.find_login(key), Ok(None)) {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = live.changed() => {}
                () = sleep(LOOK) => {}
            }
        }
    }

    /// Returns the maximum lifetime of a login.
    pub fn max_lifetime(&self) -> Duration {
        self.stay().most
    }

    fn stay(&self) -> LoginLifetime {
        self.live.read(|settings| LoginLifetime {
            idle: settings.access.login_idle,
            most: settings.access.login_max,
        })
    }

    fn find_login(&self, key: LoginKey) -> Result<Option<Login>, LoginError> {
        let found = self.vault.logins().find(key.0, self.stay())?;
        let mut last_uses = lock(&self.last_uses);
        match &found {
            None => drop(last_uses.remove(&key)),
            Some(login) => {
                let now = now_ms();
                if last_uses.len() >= MAX_LAST_USES {
                    last_uses.clear();
                }
                let known = last_uses.entry(key).or_insert(login.used_ms);
                if now >= known.saturating_add(TOUCH_EVERY_MS) {
                    *known = now;
                    self.vault.logins().touch(key.0, now);
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use rusqlite::Connection;
    use tokio::time::timeout;

    use super::super::one_time_code::make_code;
    use super::super::owner_key::open_owner_key;
    use super::super::password::hash_password;

    use super::*;
    use gatewren_base::config::Settings;
    use gatewren_base::sys::Scratch;

    const PASSWORD: &str = "four words of mine";

    async fn fixture(scratch: &Scratch) -> Logins {
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let password = hash_password(&Secret::new(PASSWORD)).unwrap();
        let key = KeyChange::New(make_owner_key(&Secret::new(PASSWORD)).unwrap());
        vault.owner().set_password(password, key).await.unwrap();
        Logins::new(vault, Settings::default().into())
    }

    async fn sign_in(logins: &Logins, password: &str, from: &str) -> Result<Secret, LoginError> {
        let cookies = sign_in_with(logins, password, from, None).await?;
        Ok(cookies.session)
    }

    async fn sign_in_with(
        logins: &Logins,
        password: &str,
        from: &str,
        device: Option<&Secret>,
    ) -> Result<OwnerCookies, LoginError> {
        let attempt = PasswordAttempt {
            password,
            from: from.parse().unwrap(),
            device: device.map(Secret::expose),
        };
        logins.sign_in_owner(attempt).await
    }

    /// Records as many guesses as all addresses together have without a delay. Hashing them would take long.
    async fn note_guesses(logins: &Logins) {
        for _ in 0..50 {
            logins.vault.owner().note_guess(now_ms()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_cookie_is_good_until_it_is_signed_out() {
        let scratch = Scratch::new();
        let logins = fixture(&scratch).await;
        let cookie = sign_in(&logins, PASSWORD, "192.0.2.1").await.unwrap();
        let (key, who) = logins.find(cookie.expose()).unwrap().unwrap();
        assert_eq!(who, LoginHolder::Owner);
        for nobody in ["", "gw_x", Token::mint().unwrap().0.expose()] {
            assert_eq!(logins.find(nobody).unwrap(), None);
        }
        let other = Vault::open(&scratch.join("vault.db")).unwrap();
        let ended = timeout(Duration::from_mins(2), logins.wait_for_end(key));
        let others = other.logins();
        let (ended, out) = tokio::join!(ended, others.end_owners());
        assert_eq!((ended, out.unwrap()), (Ok(()), 1), "by another process");
        assert_eq!(logins.find(cookie.expose()).unwrap(), None);
    }

    #[tokio::test]
    async fn guesses_are_slowed_down_also_over_a_restart_but_not_where_the_owner_is() {
        let scratch = Scratch::new();
        let logins = fixture(&scratch).await;
        sign_in(&logins, PASSWORD, "192.0.2.1").await.unwrap();
        for _ in 0..5 {
            let wrong = sign_in(&logins, "wrong", "192.0.2.9").await;
            assert_eq!(wrong.unwrap_err(), LoginError::Wrong);
        }
        let locked = sign_in(&logins, PASSWORD, "192.0.2.9").await;
        assert!(matches!(locked, Err(LoginError::Later(_))), "{locked:?}");
        note_guesses(&logins).await;
        drop(logins);
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let logins = Logins::new(vault, Settings::default().into());
        let wrong = sign_in(&logins, "wrong", "192.0.2.10").await;
        assert_eq!(wrong.unwrap_err(), LoginError::Wrong);
        let locked = sign_in(&logins, PASSWORD, "192.0.2.10").await;
        assert!(matches!(locked, Err(LoginError::Later(_))), "{locked:?}");
        sign_in(&logins, PASSWORD, "192.0.2.1").await.unwrap();
        sign_in(&logins, PASSWORD, "192.0.2.10").await.unwrap();
    }

    #[tokio::test]
    async fn guesses_from_elsewhere_delay_neither_a_device_of_the_owner_nor_a_new_address() {
        let scratch = Scratch::new();
        let logins = fixture(&scratch).await;
        let first = sign_in_with(&logins, PASSWORD, "192.0.2.1", None).await;
        let device = first.unwrap().device;
        logins.vault.logins().end_owners().await.unwrap();
        for _ in 0..5 {
            let wrong = sign_in(&logins, "wrong", "192.0.2.9").await;
            assert_eq!(wrong.unwrap_err(), LoginError::Wrong);
        }
        note_guesses(&logins).await;
        let locked = sign_in(&logins, PASSWORD, "192.0.2.9").await;
        assert!(matches!(locked, Err(LoginError::Later(_))), "{locked:?}");
        // The locked address itself, but with the cookie.
        let again = sign_in_with(&logins, PASSWORD, "192.0.2.9", Some(&device)).await;
        let renewed = again.unwrap().device;
        note_guesses(&logins).await;
        sign_in(&logins, PASSWORD, "192.0.2.20").await.unwrap();

        // The cookie has a separate bucket, which is no larger than that of an address.
        for _ in 0..5 {
            let wrong = sign_in_with(&logins, "wrong", "192.0.2.1", Some(&renewed)).await;
            assert!(matches!(wrong, Err(LoginError::Wrong)));
        }
        for cookie in [&renewed, &device] {
            let locked = sign_in_with(&logins, PASSWORD, "192.0.2.30", Some(cookie)).await;
            assert!(matches!(locked, Err(LoginError::Later(_))));
        }
        let forged = Secret::new("x".repeat(device.expose().len()));
        note_guesses(&logins).await;
        let wrong = sign_in_with(&logins, "wrong", "192.0.2.40", Some(&forged)).await;
        assert!(matches!(wrong, Err(LoginError::Wrong)));
        let locked = sign_in_with(&logins, PASSWORD, "192.0.2.40", Some(&forged)).await;
        assert!(
            matches!(locked, Err(LoginError::Later(_))),
            "it counts as none"
        );
    }

    #[tokio::test]
    async fn a_guess_that_is_not_hashed_is_not_counted() {
        let scratch = Scratch::new();
        let logins = fixture(&scratch).await;
        let from: Vec<String> = (0..120).map(|last| format!("198.51.100.{last}")).collect();
        let guesses = from.iter().map(|from| sign_in(&logins, "wrong", from));
        let answers = all_of(guesses).await;
        let hashed = answers
            .iter()
            .filter(|answer| matches!(answer, Err(LoginError::Wrong)))
            .count();
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer, Err(LoginError::Wrong | LoginError::Busy)))
        );
        let counted = logins.vault.owner().guesses().unwrap().count;
        assert_eq!(counted, u64::try_from(hashed).unwrap());
        assert!((1..20).contains(&hashed), "{hashed}");
        sign_in(&logins, PASSWORD, "203.0.113.1").await.unwrap();
    }

    /// Polls all futures until each is done.
    async fn all_of<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
        let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
        poll_fn(|cx| {
            let mut left = 0;
            for (future, done) in waiting.iter_mut().filter(|(_, done)| done.is_none()) {
                match future.as_mut().poll(cx) {
                    Poll::Ready(output) => *done = Some(output),
                    Poll::Pending => left += 1,
                }
            }
            if left == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        waiting.into_iter().filter_map(|(_, done)| done).collect()
    }

    #[tokio::test]
    async fn nobody_signs_in_where_no_password_was_set() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let logins = Logins::new(vault, Settings::default().into());
        let refused = sign_in(&logins, "", "192.0.2.1").await;
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
            .set_up(code.expose(), PASSWORD, "192.0.2.1".parse().unwrap())
            .await
            .unwrap();
        let first = vault.owner().key().unwrap().unwrap();
        assert!(open_owner_key(&first, &Secret::new(PASSWORD)).is_ok());

        // Like a server on which the password was set before there were keys.
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

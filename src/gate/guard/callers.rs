//! Authenticates agents by their tokens, and browsers by their cookies.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, COOKIE, HeaderMap};
use hyper::http::request::Parts;

use super::bearer::{bearer, to_refusal, unauthorized};
use super::host::{check_own_page, is_of_listed_page, own_origin};
use super::refusal::Refusal;
use crate::auth::{
    AccessEnd, Agents, AuthError, Links, LoginError, LoginHolder, Logins, Principal, Scrapers,
};
use crate::http::RepeatedHeader;
use gatewren_base::config::{LiveSettings, Settings};

/// The name of the session cookie. With this prefix, browsers accept it only over TLS and for this host (RFC
/// 6265bis, 4.1.3.2).
pub const COOKIE_NAME: &str = "__Host-gatewren";

/// The name of the cookie that marks a browser as one of the owner's; it gives no access.
pub const DEVICE_COOKIE_NAME: &str = "__Host-gatewren-device";

/// The cookie with the theme of the owner's page.
pub const THEME_COOKIE_NAME: &str = "__Host-gatewren-theme";

/// All callers that the owner has given access.
pub struct Callers {
    /// Agents, by their tokens.
    pub agents: Agents,
    /// Logins, by cookies.
    pub logins: Arc<Logins>,
    /// Programs, by their OAuth tokens.
    pub links: Links,
    /// Callers that may only read the metrics.
    pub scrapers: Scrapers,
    /// The current settings: whether the owner's cookie authenticates like an agent.
    pub live: LiveSettings,
}

impl Callers {
    /// Authenticates the sender of a request head. If a token was sent, it is used; a cookie may have been added by
    /// a browser. `repeated` is the last `Authorization` of the connection.
    pub fn identify(
        &self,
        head: &Parts,
        from: IpAddr,
        repeated: &RepeatedHeader,
    ) -> Result<Principal, Refusal> {
        let mut authorizations = head.headers.get_all(AUTHORIZATION).iter();
        let first = authorizations.next();
        if first.is_none()
            && let Some(cookie) = cookie(&head.headers)?
        {
            let is_listed = self.is_of_listed_page(&head.headers);
            if !is_listed {
                check_own_page(&head.uri, &head.headers)?;
            }
            let who = self.by_cookie(cookie, from)?;
            // To a listed page the owner has given what an agent may do, and not the owner's own rights.
            if is_listed && who.is_owner() {
                check_own_page(&head.uri, &head.headers)?;
            }
            return Ok(who);
        }
        let only = first.filter(|_| authorizations.next().is_none());
        // Bytes that are known need not be parsed and hashed again. Whether the token is valid now and from this address
        // is checked for each request. If it is not, the code below finds the reason.
        let hash = only.and_then(|value| repeated.digest_of(value));
        if let Some(hash) = hash
            && let Ok(who) = self.agents.identify_hash(&hash, from)
        {
            return Ok(who);
        }
        let token = bearer(&head.headers)?;
        let who = self.agents.identify(token, Some(from));
        let who = who.map_err(to_refusal)?;
        if let (Some(value), Some(hash)) = (only, who.token_hash()) {
            repeated.remember(value, *hash);
        }
        Ok(who)
    }

    /// Authenticates the sender of a request to a path for OAuth programs. A token is valid only for the URL that
    /// it was issued for. An agent's own token is not valid here: the owner has not approved it for this path.
    pub fn identify_link(&self, head: &Parts, from: IpAddr) -> Result<Principal, Refusal> {
        let token = bearer(&head.headers).map_err(|_| {
            unauthorized(
                "send an access token; the metadata URL in this challenge describes how to get one; an agent's \
                 own token is not valid here, use it at /mcp",
            )
        })?;
        let resource = format!("{}{}", own_origin(head)?, head.uri.path());
        let found = self.links.find(token, &resource);
        let found = found.map_err(|_| to_refusal(AuthError::Unavailable))?;
        let (key, token) = found.ok_or_else(|| {
            unauthorized(
                "this access token is unknown, expired, revoked or issued for another URL; renew it, or ask the \
                 owner again",
            )
        })?;
        let who = self.agents.identify_link(key, &token, from);
        who.map_err(to_refusal)
    }

    /// Whether a page of `access.allowed_origins` sent this request.
    pub(super) fn is_of_listed_page(&self, headers: &HeaderMap) -> bool {
        let listed =
            |settings: &Settings| is_of_listed_page(&settings.access.allowed_origins, headers);
        self.live.read(listed)
    }

    fn by_cookie(&self, cookie: &str, from: IpAddr) -> Result<Principal, Refusal> {
        match self.logins.find(cookie).map_err(not_signed_in)? {
            Some((key, LoginHolder::Agent(token))) => {
                let who = self.agents.identify_login(key, &token, from);
                who.map_err(to_refusal)
            }
            Some((key, LoginHolder::Owner)) if self.accepts_owner() => Ok(Principal::owner(key)),
            Some((_, LoginHolder::Owner)) => Err(unauthorized(
                "the owner's session is not accepted here; send an agent's token, or set access.owner_on_mcp",
            )),
            None => Err(unauthorized(
                "this session has ended; sign in again with POST /login",
            )),
        }
    }

    /// Returns the principal with its current policy.
    ///
    /// # Errors
    /// Why its access has ended.
    pub fn current(&self, who: &Principal) -> Result<Principal, AccessEnd> {
        if who.login().is_some_and(|login| !self.logins.is_open(login)) {
            return Err(AccessEnd::SignedOut);
        }
        if who
            .link()
            .is_some_and(|link| !self.accepts_links() || !self.links.is_open(link))
        {
            return Err(AccessEnd::Unlinked);
        }
        if !who.is_owner() {
            return self.agents.current(who);
        }
        if self.accepts_owner() {
            Ok(who.clone())
        } else {
            Err(AccessEnd::OwnerRefused)
        }
    }

    /// Waits until the policy or reach of a principal changes, and returns it.
    ///
    /// # Errors
    /// Why its access has ended.
    pub async fn wait_for_change(&self, who: &Principal) -> Result<Principal, AccessEnd> {
        tokio::select! {
            () = self.signed_out(who) => Err(AccessEnd::SignedOut),
            () = self.wait_for_unlink(who) => Err(AccessEnd::Unlinked),
            () = self.wait_until_refused(owner_on_mcp), if who.is_owner() => Err(AccessEnd::OwnerRefused),
            now = self.agents.wait_for_change(who), if !who.is_owner() => now,
        }
    }

    /// Waits until the access of a principal ends, and returns why.
    pub async fn wait_for_rejection(&self, who: &Principal) -> AccessEnd {
        tokio::select! {
            () = self.signed_out(who) => AccessEnd::SignedOut,
            () = self.wait_for_unlink(who) => AccessEnd::Unlinked,
            () = self.wait_until_refused(owner_on_mcp), if who.is_owner() => AccessEnd::OwnerRefused,
            end = self.agents.wait_for_rejection(who), if !who.is_owner() => end,
        }
    }

    fn accepts_owner(&self) -> bool {
        self.live.read(owner_on_mcp)
    }

    fn accepts_links(&self) -> bool {
        self.live.read(oauth_enabled)
    }

    /// Waits until the settings no longer give access.
    async fn wait_until_refused(&self, accepts: fn(&Settings) -> bool) {
        let mut live = self.live.clone();
        loop {
            live.mark_unchanged();
            if !live.read(accepts) {
                return;
            }
            live.changed().await;
        }
    }

    async fn signed_out(&self, who: &Principal) {
        match who.login() {
            Some(login) => self.logins.wait_for_end(login).await,
            None => std::future::pending().await,
        }
    }

    async fn wait_for_unlink(&self, who: &Principal) {
        match who.link() {
            Some(link) => tokio::select! {
                () = self.links.wait_for_end(link) => {}
                () = self.wait_until_refused(oauth_enabled) => {}
            },
            None => std::future::pending().await,
        }
    }
}

fn owner_on_mcp(settings: &Settings) -> bool {
    settings.access.owner_on_mcp
}

fn oauth_enabled(settings: &Settings) -> bool {
    settings.oauth.enabled
}

/// Returns the value of the session cookie; two of them are refused.
pub fn cookie(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut ours = cookies(headers, COOKIE_NAME);
    match (ours.next(), ours.next()) {
        (Some(_), Some(_)) => Err(unauthorized("send the session cookie only once")),
        (found, _) => Ok(found),
    }
}

/// Returns the value of the theme's cookie; the first, if there are several.
pub fn theme_cookie(headers: &HeaderMap) -> Option<&str> {
    cookies(headers, THEME_COOKIE_NAME).next()
}

/// Returns the value of the device cookie; the first, if there are several.
pub fn device_cookie(headers: &HeaderMap) -> Option<&str> {
    cookies(headers, DEVICE_COOKIE_NAME).next()
}

fn cookies<'a>(headers: &'a HeaderMap, name: &'static str) -> impl Iterator<Item = &'a str> {
    // HTTP/2 may send each cookie in a separate header (RFC 9113, 8.2.3).
    let texts = headers.get_all(COOKIE).iter();
    let pairs = texts
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let ours = pairs.filter(move |(known, _)| *known == name);
    ours.map(|(_, value)| value)
}

/// Converts a login error into a refusal.
pub fn not_signed_in(error: LoginError) -> Refusal {
    let words = error.to_string();
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    match error {
        LoginError::Wrong => Refusal::new(StatusCode::UNAUTHORIZED, "wrong_password", words),
        LoginError::Later(after) => {
            Refusal::later(StatusCode::TOO_MANY_REQUESTS, "login_locked", &words, after)
        }
        LoginError::Busy => Refusal::later(unavailable, "too_many_logins", &words, 1),
        LoginError::Unavailable => Refusal::later(unavailable, "unavailable", &words, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_cookie_is_found_among_others() {
        let found = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(COOKIE, value.parse().unwrap());
            }
            cookie(&headers)
                .map(|found| found.map(ToOwned::to_owned))
                .map_err(|refusal| refusal.status.as_u16())
        };
        assert_eq!(found(&[]), Ok(None));
        assert_eq!(found(&["a=b; gatewren=x; __Host-gatewren2=y"]), Ok(None));
        let ours = Ok(Some("x=y".to_owned()));
        assert_eq!(found(&["a=b; __Host-gatewren=x=y; c"]), ours);
        assert_eq!(found(&["a=b", "__Host-gatewren=x=y"]), ours);
        assert_eq!(found(&["__Host-gatewren=x; __Host-gatewren=x"]), Err(401));
        assert_eq!(found(&["__Host-gatewren=x", "__Host-gatewren=y"]), Err(401));
    }
}

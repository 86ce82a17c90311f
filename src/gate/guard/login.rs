//! `POST /login` and `POST /logout`: exchange the owner's password or an agent's token for a cookie, and end it.

use std::net::SocketAddr;

use hyper::header::{HeaderValue, SET_COOKIE};
use hyper::{Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::bearer::to_refusal;
use super::callers::{
    COOKIE_NAME, Callers, DEVICE_COOKIE_NAME, THEME_COOKIE_NAME, cookie, device_cookie,
    not_signed_in,
};
use super::chain::{Guard, check_type};
use super::host::check_own_page;
use super::identity::Authenticator;
use super::refusal::Refusal;
use crate::auth::{DEVICE_COOKIE_S, Logins, PasswordAttempt};
use crate::http::{ResponseBody, Upload, empty, json as json_response};
use gatewren_base::config::ip_prefix;
use gatewren_base::sys::Secret;

/// The maximum size of an unauthenticated body.
const MAX_BYTES: usize = 4096;

/// The owner's name in the answer.
const OWNER_NAME: &str = "owner";

/// The credentials of a login: exactly one of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Credentials {
    password: Option<Secret>,
    token: Option<Secret>,
}

impl Guard {
    /// Whether there are logins: fixtures have no owner.
    pub fn has_logins(&self) -> bool {
        self.callers().is_some()
    }

    /// Exchanges a password or a token for a cookie. It is preceded by the chain without authentication: the body
    /// is read, but its size is limited, and each request is charged to its address.
    pub async fn login(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let callers = self.stranger(&request, peer)?;
        let (head, body) = request.into_parts();
        check_type(&head.headers)?;
        self.check_edge(&head.headers).await?;
        let presence = body.presence().clone();
        let body = self.anonymous_body(body, MAX_BYTES).await?;
        let credentials: Credentials = serde_json::from_slice(&body).map_err(|_| bad_login())?;
        if credentials.password.is_some() {
            check_own_page(&head.uri, &head.headers)?;
        }
        let (logins, from) = (&callers.logins, ip_prefix(peer.ip()));
        let (cookie, who) = match (credentials.password, credentials.token) {
            (Some(password), None) => {
                let attempt = PasswordAttempt {
                    password: password.expose(),
                    from,
                    device: device_cookie(&head.headers),
                };
                let cookies = logins.sign_in_owner(attempt).await;
                let cookies = cookies.map_err(not_signed_in)?;
                presence.identify();
                let mut response = signed_in(logins, cookies.session.expose(), OWNER_NAME);
                set_device_cookie(&mut response, cookies.device.expose());
                return Ok(response);
            }
            (None, Some(token)) => {
                let who = callers.agents.identify(token.expose(), Some(peer.ip()));
                let who = who.map_err(to_refusal)?;
                let cookie = logins
                    .sign_in_agent(who.agent_id().as_str(), token.expose(), from)
                    .await;
                presence.identify();
                (cookie, who.name().to_string())
            }
            _ => return Err(bad_login()),
        };
        let cookie = cookie.map_err(not_signed_in)?;
        Ok(signed_in(logins, cookie.expose(), &who))
    }

    /// Ends the login of the cookie; succeeds also if there is none.
    pub async fn logout(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let callers = self.stranger(&request, peer)?;
        self.check_edge(request.headers()).await?;
        if let Some(cookie) = cookie(request.headers())? {
            let ended = callers.logins.sign_out(cookie).await;
            ended.map_err(not_signed_in)?;
        }
        let mut response = empty(StatusCode::NO_CONTENT);
        clear_cookie(&mut response);
        Ok(response)
    }

    /// Charges an unauthenticated request, and refuses one of another page, unless the owner has listed its origin.
    fn stranger(&self, request: &Request<Upload>, peer: SocketAddr) -> Result<&Callers, Refusal> {
        self.charge_stranger(peer)?;
        let nowhere = || {
            Refusal::new(
                StatusCode::NOT_FOUND,
                "not_found",
                "this server has no sign-in",
            )
        };
        let callers = self.callers().ok_or_else(nowhere)?;
        if !callers.is_of_listed_page(request.headers()) {
            check_own_page(request.uri(), request.headers())?;
        }
        Ok(callers)
    }

    #[cfg_attr(
        not(feature = "everything"),
        expect(clippy::unnecessary_wraps, reason = "only fixtures return `None`")
    )]
    pub(super) fn callers(&self) -> Option<&Callers> {
        match &self.identity {
            Authenticator::Agents(callers) => Some(callers),
            #[cfg(feature = "everything")]
            _ => None,
        }
    }
}

fn signed_in(logins: &Logins, cookie: &str, who: &str) -> Response<ResponseBody> {
    let most_s = logins.max_lifetime().as_secs();
    let body = json!({ "signed_in_as": who, "cookie": COOKIE_NAME, "expires_in_s": most_s });
    let mut response = json_response(StatusCode::OK, body.to_string().into_bytes());
    set_cookie(&mut response, cookie, most_s);
    response
}

/// Removes the session cookie.
pub fn clear_cookie(response: &mut Response<ResponseBody>) {
    set_cookie(response, "", 0);
}

/// Sets the session cookie for this many seconds.
pub fn set_cookie(response: &mut Response<ResponseBody>, value: &str, age_s: u64) {
    add_cookie(response, COOKIE_NAME, value, age_s);
}

/// Sets the device cookie, in addition to the session's.
pub fn set_device_cookie(response: &mut Response<ResponseBody>, value: &str) {
    add_cookie(response, DEVICE_COOKIE_NAME, value, DEVICE_COOKIE_S);
}

/// Sets the cookie of the owner's theme, for a year.
pub fn set_theme_cookie(response: &mut Response<ResponseBody>, value: &str) {
    add_cookie(response, THEME_COOKIE_NAME, value, 365 * 24 * 3600);
}

/// Adds a cookie that is invisible to scripts, is sent only over TLS, and is never sent with a request of another
/// site.
fn add_cookie(response: &mut Response<ResponseBody>, name: &str, value: &str, age_s: u64) {
    let cookie =
        format!("{name}={value}; Path=/; HttpOnly; Secure; SameSite=Strict; Max-Age={age_s}");
    if let Ok(mut cookie) = HeaderValue::from_str(&cookie) {
        cookie.set_sensitive(true);
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

fn bad_login() -> Refusal {
    Refusal::new(
        StatusCode::BAD_REQUEST,
        "bad_login",
        "send {\"password\": \"...\"} as the owner, or {\"token\": \"gw_...\"} as an agent",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{IssuedTokens, OwnerCookies};
    use gatewren_base::sys::ZeroizeOnDrop;

    #[test]
    fn what_a_sign_in_and_a_program_send_is_overwritten_when_it_is_dropped() {
        fn assert_wiped<T, S: ZeroizeOnDrop>(_: fn(&T) -> &S) {}
        fn assert_wiped_if_sent<T, S: ZeroizeOnDrop>(_: fn(&T) -> &Option<S>) {}
        assert_wiped_if_sent(|sent: &Credentials| &sent.password);
        assert_wiped_if_sent(|sent: &Credentials| &sent.token);
        assert_wiped(|cookies: &OwnerCookies| &cookies.session);
        assert_wiped(|given: &IssuedTokens| &given.access);
        assert_wiped(|given: &IssuedTokens| &given.refresh);
    }
}

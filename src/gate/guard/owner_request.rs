//! A request to the owner's page: the owner's session, if signed in, and the submitted form.

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use ring::digest::{SHA256, digest};

use super::callers::{COOKIE_NAME, cookie, device_cookie, not_signed_in, theme_cookie};
use super::chain::Guard;
use super::host::check_own_page;
use super::refusal::Refusal;
use crate::auth::LoginKey;
use crate::http::Upload;
use gatewren_base::config::ip_prefix;
use gatewren_base::sys::Secret;

/// The maximum size of a form without a session.
const STRANGERS_BYTES: usize = 4096;

/// The maximum size of the owner's form.
const OWNERS_BYTES: usize = 64 * 1024;

/// The maximum number of fields of a form or of a query; the others are ignored.
const MAX_FIELDS: usize = 512;

/// The CSRF token's field in every form of the owner.
pub const PROOF: &str = "proof";

/// A request to the owner's page. Only the chain creates one.
#[derive(Debug)]
pub struct OwnerRequest {
    session: Option<OwnerSession>,
    peer: SocketAddr,
    head: Parts,
    form: Bytes,
}

/// The owner's session.
#[derive(Debug, Clone)]
pub struct OwnerSession {
    /// The key of the login.
    pub key: LoginKey,
    /// The login's id, as in lists of logins.
    pub login: String,
    /// The CSRF token of its forms: another site's page cannot know it.
    pub proof: String,
}

impl Guard {
    /// The chain for the owner's page. A visitor who is not signed in is charged, and may send only a small body.
    pub async fn visit(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<OwnerRequest, Refusal> {
        let (head, body) = request.into_parts();
        let session = match self.session(&head.headers) {
            Ok(Some(session)) => {
                body.presence().identify();
                Some(session)
            }
            Ok(None) => {
                self.charge_stranger(peer)?;
                None
            }
            Err(refusal) => return Err(self.charge(peer, refusal)),
        };
        self.check_edge(&head.headers).await?;
        let mut visit = OwnerRequest {
            session,
            peer,
            head,
            form: Bytes::new(),
        };
        if visit.head.method == Method::POST {
            check_own_page(&visit.head.uri, &visit.head.headers)?;
            check_form(&visit.head.headers)?;
            visit.form = match visit.session {
                Some(_) => self.small_body(body, OWNERS_BYTES).await?,
                None => self.anonymous_body(body, STRANGERS_BYTES).await?,
            };
            visit.check_proof()?;
        }
        Ok(visit)
    }

    fn session(&self, headers: &HeaderMap) -> Result<Option<OwnerSession>, Refusal> {
        let Some(callers) = self.callers() else {
            let words = "this server has no owner";
            return Err(Refusal::new(StatusCode::NOT_FOUND, "not_found", words));
        };
        let Some(cookie) = cookie(headers)? else {
            return Ok(None);
        };
        let found = callers.logins.owner_of(cookie).map_err(not_signed_in)?;
        Ok(found.map(|(key, login)| OwnerSession {
            key,
            login: login.id,
            proof: proof(cookie),
        }))
    }
}

impl OwnerRequest {
    /// The owner's session, if the visitor is signed in as the owner.
    pub fn session(&self) -> Option<&OwnerSession> {
        self.session.as_ref()
    }

    /// The method: GET, HEAD or POST.
    pub fn method(&self) -> &Method {
        &self.head.method
    }

    /// The path.
    pub fn path(&self) -> &str {
        self.head.uri.path()
    }

    /// The path and query, to return to.
    pub fn target(&self) -> &str {
        let target = self.head.uri.path_and_query();
        target.map_or("/", |target| target.as_str())
    }

    /// The network prefix that counts as one stranger.
    pub fn from(&self) -> IpAddr {
        ip_prefix(self.peer.ip())
    }

    /// The host name or address of the request, with the port if it is not 443.
    pub fn host(&self) -> &str {
        let named = self
            .head
            .uri
            .authority()
            .map(hyper::http::uri::Authority::as_str);
        let header = || self.header("host");
        named.or_else(header).unwrap_or("localhost")
    }

    /// A header, if it is text and not repeated.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.head.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }

    /// A field of the query.
    pub fn query(&self, name: &str) -> Option<String> {
        let query = self.head.uri.query().unwrap_or_default();
        first(query.as_bytes(), name)
    }

    /// A field of the form.
    pub fn field(&self, name: &str) -> Option<String> {
        first(&self.form, name)
    }

    /// A field of the form that is a secret.
    pub fn secret_field(&self, name: &str) -> Option<Secret> {
        self.field(name).map(Secret::new)
    }

    /// All fields of this name, in order.
    pub fn fields(&self, name: &str) -> Vec<String> {
        let fields = form_urlencoded::parse(&self.form).take(MAX_FIELDS);
        let named = fields.filter(|(known, _)| known == name);
        named.map(|(_, value)| value.into_owned()).collect()
    }

    /// All fields of the form, in order, to be sent again.
    pub fn all_fields(&self) -> Vec<(String, String)> {
        let fields = form_urlencoded::parse(&self.form).take(MAX_FIELDS);
        fields
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect()
    }

    /// The cookie, to end it.
    pub fn cookie(&self) -> Option<&str> {
        cookie(&self.head.headers).ok().flatten()
    }

    /// The device cookie that was sent; it is not validated.
    pub fn device(&self) -> Option<&str> {
        device_cookie(&self.head.headers)
    }

    /// The theme cookie; its value is not validated.
    pub fn theme(&self) -> Option<&str> {
        theme_cookie(&self.head.headers)
    }

    /// Checks the CSRF token of an owner's form.
    fn check_proof(&self) -> Result<(), Refusal> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let sent = self.field(PROOF).unwrap_or_default();
        if Secret::new(sent) == Secret::new(session.proof.as_str()) {
            return Ok(());
        }
        let words =
            "this form is from an earlier sign-in; go back, reload the page, and submit it again";
        Err(Refusal::new(StatusCode::FORBIDDEN, "stale_form", words))
    }
}

/// Derives the CSRF token from the cookie, which pages cannot read; it cannot be reversed.
pub fn proof(cookie: &str) -> String {
    let hash = digest(&SHA256, format!("{COOKIE_NAME} form {cookie}").as_bytes());
    URL_SAFE_NO_PAD.encode(hash.as_ref().get(..16).unwrap_or_default())
}

fn first(encoded: &[u8], name: &str) -> Option<String> {
    let mut fields = form_urlencoded::parse(encoded).take(MAX_FIELDS);
    let found = fields.find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned())
}

/// Refuses a media type that our forms do not send (415).
fn check_form(headers: &HeaderMap) -> Result<(), Refusal> {
    let media = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media = media
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    if media
        .trim()
        .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "content_type",
        "send the form with Content-Type: application/x-www-form-urlencoded",
    ))
}

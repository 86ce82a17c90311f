//! The endpoints of the authorization server; the front has already checked the sender and the size of the body.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::Response;
use hyper::header::HeaderMap;

use super::authorize::{AuthorizationFault, AuthorizationRequest};
use super::consent::ConsentContext;
use super::document::MetadataDocuments;
use super::error::OAuthError;
use super::form::OAuthParameters;
use super::login_redirect::MAX_QUERY;
use super::page::refusal;
use super::site::IssuerOrigin;
use super::{register, texts, token};
use crate::auth::{Links, LoginKey, Logins};
use crate::http::ResponseBody;
use gatewren_base::config::LiveSettings;
use gatewren_store::vault::Vault;

/// The maximum size of a request's body, for every endpoint.
pub const MAX_BODY: usize = 32 * 1024;

/// The authorization server.
pub struct AuthorizationServer {
    vault: Vault,
    live: LiveSettings,
    links: Links,
    documents: MetadataDocuments,
    logins: Arc<Logins>,
}

/// The owner, signed in on our own page.
#[derive(Debug, Clone, Copy)]
pub struct SignedInOwner<'a> {
    /// The CSRF token of the owner's forms: no other page can know it.
    pub proof: &'a str,
    /// The key of the owner's login.
    pub login: LoginKey,
    /// The theme of the owner's page; `None` for that of the system.
    pub theme: Option<&'static str>,
}

impl AuthorizationServer {
    /// Creates a server over this vault; the owner is authenticated by `logins`.
    pub fn new(vault: Vault, live: LiveSettings, logins: Arc<Logins>) -> Self {
        Self {
            logins,
            links: Links::new(vault.clone()),
            documents: MetadataDocuments::new(live.clone()),
            vault,
            live,
        }
    }

    /// Whether the settings enable the server.
    pub fn is_on(&self) -> bool {
        self.live.read(|settings| settings.oauth.enabled)
    }

    /// Registers a program.
    pub async fn register(&self, body: &[u8]) -> Response<ResponseBody> {
        to_response(register::register(&self.vault, body).await)
    }

    /// Exchanges a program's code or refresh token for tokens.
    pub async fn token(
        &self,
        site: &IssuerOrigin,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Response<ResponseBody> {
        to_response(token::exchange(&self.links, site, headers, body).await)
    }

    /// Revokes a program's token.
    pub async fn revoke(&self, headers: &HeaderMap, body: &[u8]) -> Response<ResponseBody> {
        to_response(token::revoke(&self.links, headers, body).await)
    }

    /// Shows the consent page to the owner.
    pub async fn ask(
        &self,
        site: &IssuerOrigin,
        owner: SignedInOwner<'_>,
        query: &str,
    ) -> Response<ResponseBody> {
        if query.len() > MAX_QUERY {
            return refusal(texts::TOO_LONG);
        }
        match self.read(site, query.as_bytes()).await {
            Ok((asked, form)) => self.consent_context(site, owner).ask(&asked, &form, None),
            Err(response) => *response,
        }
    }

    /// Carries out the owner's decision.
    pub async fn decide(
        &self,
        site: &IssuerOrigin,
        owner: SignedInOwner<'_>,
        body: &[u8],
        from: IpAddr,
    ) -> Response<ResponseBody> {
        match self.read(site, body).await {
            Ok((asked, form)) => {
                self.consent_context(site, owner)
                    .decide(&asked, &form, from)
                    .await
            }
            Err(response) => *response,
        }
    }

    async fn read(
        &self,
        site: &IssuerOrigin,
        text: &[u8],
    ) -> Result<(AuthorizationRequest, OAuthParameters), Box<Response<ResponseBody>>> {
        let form = OAuthParameters::read(text).map_err(|why| Box::new(refusal(&why)))?;
        let asked = AuthorizationRequest::read(site, &self.vault, &self.documents, &form).await;
        match asked {
            Ok(asked) => Ok((asked, form)),
            Err(AuthorizationFault::Shown(why)) => Err(Box::new(refusal(&why))),
            Err(AuthorizationFault::Sent(response)) => Err(response),
        }
    }

    fn consent_context<'a>(
        &'a self,
        site: &'a IssuerOrigin,
        owner: SignedInOwner<'a>,
    ) -> ConsentContext<'a> {
        ConsentContext {
            proof: owner.proof,
            login: owner.login,
            theme: owner.theme,
            logins: &self.logins,
            vault: &self.vault,
            links: &self.links,
            live: &self.live,
            site,
        }
    }
}

fn to_response(answer: Result<Response<ResponseBody>, OAuthError>) -> Response<ResponseBody> {
    answer.unwrap_or_else(|error| error.to_response())
}

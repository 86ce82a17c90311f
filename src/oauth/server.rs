//! The authorization server's endpoints; who comes there, and how large their bodies are, the front has looked at.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::Response;
use hyper::header::HeaderMap;

use super::arrival::MAX_QUERY;
use super::authorize::{Asked, Fault};
use super::consent::Desk;
use super::document::Documents;
use super::error::OAuthError;
use super::form::Form;
use super::page::refusal;
use super::site::Site;
use super::{register, token, words};
use crate::auth::{Links, LoginKey, Logins};
use crate::config::Live;
use crate::http::Body;
use crate::vault::Vault;

/// The largest body of a request to any of them.
pub const MAX_BODY: usize = 32 * 1024;

/// The authorization server.
pub struct OAuth {
    vault: Vault,
    live: Live,
    links: Links,
    documents: Documents,
    logins: Arc<Logins>,
}

/// The owner as it is signed in on our own page.
#[derive(Debug, Clone, Copy)]
pub struct SignedInOwner<'a> {
    /// What its forms carry: no other page can know it.
    pub proof: &'a str,
    /// What its login is known again by.
    pub login: LoginKey,
}

impl OAuth {
    /// One that gives out what this vault keeps, on the word of the owner who is signed in there.
    pub fn new(vault: Vault, live: Live, logins: Arc<Logins>) -> Self {
        Self {
            logins,
            links: Links::new(vault.clone()),
            documents: Documents::new(live.clone()),
            vault,
            live,
        }
    }

    /// Whether there is one, by the settings.
    pub fn is_on(&self) -> bool {
        self.live.read(|settings| settings.oauth.enabled)
    }

    /// A program registers.
    pub async fn register(&self, body: &[u8]) -> Response<Body> {
        answered(register::register(&self.vault, body).await)
    }

    /// A program exchanges its code or its refresh token.
    pub async fn token(&self, site: &Site, headers: &HeaderMap, body: &[u8]) -> Response<Body> {
        answered(token::exchange((&self.links, site), headers, body).await)
    }

    /// A program gives back what it has.
    pub async fn revoke(&self, headers: &HeaderMap, body: &[u8]) -> Response<Body> {
        answered(token::revoke(&self.links, headers, body).await)
    }

    /// Asks the owner, whose forms carry a proof.
    pub async fn ask(
        &self,
        (site, owner): (&Site, SignedInOwner<'_>),
        query: &str,
    ) -> Response<Body> {
        if query.len() > MAX_QUERY {
            return refusal(words::TOO_LONG);
        }
        match self.read(site, query.as_bytes()).await {
            Ok((asked, form)) => self.desk(site, owner).ask(&asked, &form, None),
            Err(response) => *response,
        }
    }

    /// Does what the owner has decided.
    pub async fn decide(
        &self,
        (site, owner): (&Site, SignedInOwner<'_>),
        body: &[u8],
        from: IpAddr,
    ) -> Response<Body> {
        match self.read(site, body).await {
            Ok((asked, form)) => self.desk(site, owner).decide(&asked, &form, from).await,
            Err(response) => *response,
        }
    }

    async fn read(&self, site: &Site, text: &[u8]) -> Result<(Asked, Form), Box<Response<Body>>> {
        let form = Form::read(text).map_err(|why| Box::new(refusal(&why)))?;
        let asked = Asked::read(site, (&self.vault, &self.documents), &form).await;
        match asked {
            Ok(asked) => Ok((asked, form)),
            Err(Fault::Shown(why)) => Err(Box::new(refusal(&why))),
            Err(Fault::Sent(response)) => Err(response),
        }
    }

    fn desk<'a>(&'a self, site: &'a Site, owner: SignedInOwner<'a>) -> Desk<'a> {
        Desk {
            proof: owner.proof,
            login: owner.login,
            logins: &self.logins,
            vault: &self.vault,
            links: &self.links,
            live: &self.live,
            site,
        }
    }
}

fn answered(answer: Result<Response<Body>, OAuthError>) -> Response<Body> {
    answer.unwrap_or_else(|error| error.to_response())
}

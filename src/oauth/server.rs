//! The authorization server's endpoints; who comes there, and how large their bodies are, the front has looked at.

use std::net::IpAddr;

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
use crate::auth::Links;
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
}

impl OAuth {
    /// One that gives out what this vault keeps.
    pub fn new(vault: Vault, live: Live) -> Self {
        Self {
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
    pub async fn ask(&self, (site, proof): (&Site, &str), query: &str) -> Response<Body> {
        if query.len() > MAX_QUERY {
            return refusal(words::TOO_LONG);
        }
        match self.read(site, query.as_bytes()).await {
            Ok((asked, form)) => self.desk(site, proof).ask(&asked, &form, None),
            Err(response) => *response,
        }
    }

    /// Does what the owner has decided.
    pub async fn decide(
        &self,
        (site, proof): (&Site, &str),
        body: &[u8],
        from: IpAddr,
    ) -> Response<Body> {
        match self.read(site, body).await {
            Ok((asked, form)) => self.desk(site, proof).decide(&asked, &form, from).await,
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

    fn desk<'a>(&'a self, site: &'a Site, proof: &'a str) -> Desk<'a> {
        Desk {
            proof,
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

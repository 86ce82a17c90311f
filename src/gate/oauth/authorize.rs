//! Authorization requests and their answers; an answer is sent only to a redirect URI that the program declared
//! before.

use hyper::header::{CACHE_CONTROL, HeaderValue, LOCATION, REFERRER_POLICY};
use hyper::{Response, StatusCode};

use super::client::RequestingClient;
use super::document::{MetadataDocuments, is_address};
use super::form::OAuthParameters;
use super::redirect::{fits, host, place, with};
use super::site::IssuerOrigin;
use crate::http::{ResponseBody, empty};
use gatewren_base::sys::plain_line;
use gatewren_store::vault::Vault;

/// The length of a challenge: SHA-256 in base64url.
const CHALLENGE_CHARS: usize = 43;

/// A valid authorization request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationRequest {
    /// The program.
    pub client: RequestingClient,
    /// The URI that the answer is sent to.
    pub redirect_uri: String,
    /// The PKCE challenge that the verifier must match.
    pub challenge: String,
    /// The program's state, to be returned with the answer.
    pub state: Option<String>,
}

/// Why the owner is not asked.
pub enum AuthorizationFault {
    /// The redirect URI is not verified, so the error is shown to the person.
    Shown(String),
    /// The error is sent to the program by a redirect.
    Sent(Box<Response<ResponseBody>>),
}

impl AuthorizationRequest {
    /// Parses and validates a request, and looks up its client.
    pub async fn read(
        site: &IssuerOrigin,
        vault: &Vault,
        documents: &MetadataDocuments,
        form: &OAuthParameters,
    ) -> Result<Self, AuthorizationFault> {
        let id = form.need("client_id").map_err(AuthorizationFault::Shown)?;
        let client = client(vault, documents, id)
            .await
            .map_err(AuthorizationFault::Shown)?;
        let redirect_uri = form
            .need("redirect_uri")
            .map_err(AuthorizationFault::Shown)?;
        let known = &client.redirect_uris;
        if place(redirect_uri).is_none() || !known.iter().any(|known| fits(known, redirect_uri)) {
            let words = "the redirect URI is not one that the program has registered";
            return Err(AuthorizationFault::Shown(words.to_owned()));
        }
        let state = form.get("state");
        let challenge = validate_parameters(site, form).map_err(|(code, words)| {
            let more = [("error", code), ("error_description", words)];
            AuthorizationFault::Sent(Box::new(answer(site, redirect_uri, state, &more)))
        })?;
        Ok(Self {
            redirect_uri: redirect_uri.to_owned(),
            challenge: challenge.to_owned(),
            state: state.map(ToOwned::to_owned),
            client,
        })
    }

    /// Builds an answer to the program.
    pub fn answer(&self, site: &IssuerOrigin, more: &[(&str, &str)]) -> Response<ResponseBody> {
        answer(site, &self.redirect_uri, self.state.as_deref(), more)
    }
}

/// Validates the other parameters of a request and returns its challenge, or an error code of RFC 6749 and a
/// description.
fn validate_parameters<'a>(
    site: &IssuerOrigin,
    form: &'a OAuthParameters,
) -> Result<&'a str, (&'static str, &'static str)> {
    match form.get("response_type") {
        Some("code") => {}
        Some(_) => {
            let words = "the only supported response type is code";
            return Err(("unsupported_response_type", words));
        }
        None => return Err(("invalid_request", "the parameter response_type is missing")),
    }
    let resource = form.get("resource");
    if resource.is_some_and(|resource| !site.is_resource(resource)) {
        return Err((
            "invalid_target",
            "this resource does not belong to this server",
        ));
    }
    let sound = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    let challenge = form
        .get("code_challenge")
        .filter(|challenge| challenge.len() == CHALLENGE_CHARS && challenge.bytes().all(sound));
    match (challenge, form.get("code_challenge_method")) {
        (Some(challenge), Some("S256")) => Ok(challenge),
        _ => Err((
            "invalid_request",
            "send a code_challenge with code_challenge_method=S256 (PKCE)",
        )),
    }
}

/// Redirects the person's browser to the program.
fn answer(
    site: &IssuerOrigin,
    redirect_uri: &str,
    state: Option<&str>,
    more: &[(&str, &str)],
) -> Response<ResponseBody> {
    let issuer = site.issuer();
    let mut parameters = more.to_vec();
    parameters.extend(state.map(|state| ("state", state)));
    // Identifies the issuer, so that a program does not take the answer for one of another server (RFC 9207).
    parameters.push(("iss", &issuer));
    see_other(&with(redirect_uri, &parameters))
}

/// Redirects the browser.
pub fn see_other(uri: &str) -> Response<ResponseBody> {
    let mut response = empty(StatusCode::SEE_OTHER);
    let headers = response.headers_mut();
    if let Ok(mut uri) = HeaderValue::from_str(uri) {
        uri.set_sensitive(true);
        headers.insert(LOCATION, uri);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Looks up a client by its id.
async fn client(
    vault: &Vault,
    documents: &MetadataDocuments,
    id: &str,
) -> Result<RequestingClient, String> {
    let unavailable = |cause: &dyn std::fmt::Display| {
        tracing::error!("looking up a client failed: {cause}");
        "clients cannot be looked up at the moment; try again soon".to_owned()
    };
    let known = vault
        .oauth_clients()
        .find(id)
        .map_err(|e| unavailable(&e))?;
    if is_address(id) {
        // Boxed: this lookup is rare, and every request would need room for it.
        let metadata = Box::pin(documents.read(id)).await?;
        let metadata_host = host(id).to_owned();
        let name = match metadata.name {
            name if name.is_empty() => plain_line(&metadata_host, 64),
            name => name,
        };
        return Ok(RequestingClient {
            id: id.to_owned(),
            name,
            redirect_uris: metadata.redirect_uris,
            metadata_host: Some(metadata_host),
            agent: known.and_then(|known| known.agent),
        });
    }
    let known = known.ok_or_else(|| {
        "the program that sent you here is not registered at this server, or its registration was removed: \
         connect it again"
            .to_owned()
    })?;
    let name = match known.name {
        name if name.is_empty() => "a program without a name".to_owned(),
        name => name,
    };
    Ok(RequestingClient {
        id: known.id,
        name,
        redirect_uris: known.redirect_uris,
        metadata_host: None,
        agent: known.agent,
    })
}

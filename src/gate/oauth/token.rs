//! The token endpoint and the revocation endpoint.

use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::error::{OAuthError, uncached_json};
use super::form::OAuthParameters;
use super::site::{IssuerOrigin, SCOPE};
use crate::auth::{IssuedTokens, Links, TokenRequest};
use crate::http::ResponseBody;

/// Exchanges a code or a refresh token for new tokens.
pub async fn exchange(
    links: &Links,
    site: &IssuerOrigin,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response<ResponseBody>, OAuthError> {
    let form = form(headers, body)?;
    let grant = form.need("grant_type").map_err(OAuthError::request)?;
    let client = form.need("client_id").map_err(OAuthError::request)?;
    let asked = form.get("resource");
    if asked.is_some_and(|asked| !site.is_resource(asked)) {
        let words = format!("the resource must be {}", site.resource());
        return Err(OAuthError::new("invalid_target", words));
    }
    let resource = asked.map(|_| site.resource());
    let resource = resource.as_deref();
    let given = match grant {
        "authorization_code" => {
            let code = form.need("code").map_err(OAuthError::request)?;
            let brought = TokenRequest {
                client,
                redirect_uri: form.get("redirect_uri"),
                verifier: form.need("code_verifier").map_err(OAuthError::request)?,
                resource,
            };
            links.redeem(code, brought).await?
        }
        "refresh_token" => {
            let refresh = form.need("refresh_token").map_err(OAuthError::request)?;
            links.renew(refresh, client, resource).await?
        }
        _ => {
            let words = "the grant type must be authorization_code or refresh_token";
            return Err(OAuthError::new("unsupported_grant_type", words));
        }
    };
    Ok(handed_over(&given))
}

/// Ends the link that a token belongs to (RFC 7009). The answer does not reveal whether there was one.
pub async fn revoke(
    links: &Links,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response<ResponseBody>, OAuthError> {
    let form = form(headers, body)?;
    let token = form.need("token").map_err(OAuthError::request)?;
    let client = form.need("client_id").map_err(OAuthError::request)?;
    links.end(token, client).await?;
    Ok(uncached_json(StatusCode::OK, &json!({})))
}

fn form(headers: &HeaderMap, body: &[u8]) -> Result<OAuthParameters, OAuthError> {
    let media = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media = media.and_then(|media| media.split(';').next());
    let is_form = media.is_some_and(|media| {
        media
            .trim()
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    });
    if !is_form {
        let words = "send the parameters with Content-Type: application/x-www-form-urlencoded";
        return Err(OAuthError::request(words));
    }
    OAuthParameters::read(body).map_err(OAuthError::request)
}

fn handed_over(given: &IssuedTokens) -> Response<ResponseBody> {
    let body = json!({
        "access_token": given.access.expose(),
        // Some clients accept only this spelling.
        "token_type": "Bearer",
        "expires_in": given.expires.as_secs(),
        "refresh_token": given.refresh.expose(),
        "scope": SCOPE,
    });
    uncached_json(StatusCode::OK, &body)
}

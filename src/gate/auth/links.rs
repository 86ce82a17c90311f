//! OAuth links of programs: their codes and tokens, and whether the owner's consent is still valid.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use tokio::time::sleep;

use super::token::Token;
use gatewren_base::sys::Secret;
use gatewren_store::vault::{
    Agent, CodeRedemption, ExchangeOutcome, NewLink, NewTokens, OAUTH_ACCESS_MS, TokenRenewal,
    Vault, VaultError,
};

/// The maximum interval of checks while waiting for a link's end: expiry causes no event.
const LOOK: Duration = Duration::from_secs(30);

/// The allowed length of a verifier (RFC 7636, 4.1).
const VERIFIER_CHARS: std::ops::RangeInclusive<usize> = 43..=128;

/// The id of a link. It is stored as bytes, which need no alignment and do not enlarge the types that contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkKey([u8; 8]);

impl LinkKey {
    fn number(self) -> i64 {
        i64::from_ne_bytes(self.0)
    }
}

/// Why an exchange is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkError {
    /// The code or token is invalid, or belongs to another program.
    Refused,
    /// It is valid for another resource.
    OtherResource,
    /// The vault cannot be read. The log has the reason.
    Unavailable,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => {
                "the code or the refresh token is unknown, used, expired, revoked or issued to another program; \
                 ask the owner again at the authorization endpoint"
            }
            Self::OtherResource => "this was issued for another resource",
            Self::Unavailable => "tokens cannot be issued at the moment; try again soon",
        })
    }
}

impl std::error::Error for LinkError {}

impl From<VaultError> for LinkError {
    fn from(cause: VaultError) -> Self {
        tracing::error!("an OAuth link failed: {cause}");
        Self::Unavailable
    }
}

/// The owner's consent.
#[derive(Debug, Clone, Copy)]
pub struct OwnerConsent<'a> {
    /// The agent that the program acts as.
    pub agent: &'a Agent,
    /// The program's id.
    pub client: &'a str,
    /// The resource that its tokens are valid for.
    pub resource: &'a str,
    /// The redirect URI for its code.
    pub redirect_uri: &'a str,
    /// The PKCE code challenge.
    pub challenge: &'a str,
}

/// The parameters of a program's request with a code.
#[derive(Debug, Clone, Copy)]
pub struct TokenRequest<'a> {
    /// The program's id.
    pub client: &'a str,
    /// The redirect URI, if the request has one.
    pub redirect_uri: Option<&'a str>,
    /// The PKCE code verifier.
    pub verifier: &'a str,
    /// The requested resource, if the request has one.
    pub resource: Option<&'a str>,
}

/// New tokens, shown once.
#[derive(Debug)]
pub struct IssuedTokens {
    /// The access token.
    pub access: Secret,
    /// The refresh token.
    pub refresh: Secret,
    /// The lifetime of the access token.
    pub expires: Duration,
}

/// The links. Each call reads the vault, so an ended link is invalid at once.
#[derive(Clone)]
pub struct Links(Vault);

impl Links {
    /// Uses the links of this vault.
    pub fn new(vault: Vault) -> Self {
        Self(vault)
    }

    /// Adds a link and returns its code.
    pub async fn begin(&self, agreement: OwnerConsent<'_>) -> Result<Secret, VaultError> {
        let (code, hash) = Token::mint()?;
        let link = NewLink {
            agent: agreement.agent.token_sha256,
            client: agreement.client.to_owned(),
            resource: agreement.resource.to_owned(),
            code_sha256: *hash.as_bytes(),
            redirect_uri: agreement.redirect_uri.to_owned(),
            challenge: agreement.challenge.to_owned(),
        };
        self.0.oauth_links().add(link).await?;
        Ok(code)
    }

    /// Exchanges a code for tokens.
    pub async fn redeem(
        &self,
        code: &str,
        brought: TokenRequest<'_>,
    ) -> Result<IssuedTokens, LinkError> {
        let code = Token::hash(code).ok_or(LinkError::Refused)?;
        let redemption = CodeRedemption {
            code_sha256: *code.as_bytes(),
            client: brought.client.to_owned(),
            redirect_uri: brought.redirect_uri.map(ToOwned::to_owned),
            challenge: challenge(brought.verifier).ok_or(LinkError::Refused)?,
            resource: brought.resource.map(ToOwned::to_owned),
        };
        let (given, tokens) = mint()?;
        let exchanged = self.0.oauth_links().redeem(redemption, tokens).await?;
        check_exchange(exchanged, brought.client).map(|()| given)
    }

    /// Exchanges a refresh token for new tokens.
    pub async fn renew(
        &self,
        refresh: &str,
        client: &str,
        resource: Option<&str>,
    ) -> Result<IssuedTokens, LinkError> {
        let refresh = Token::hash(refresh).ok_or(LinkError::Refused)?;
        let renewal = TokenRenewal {
            refresh: *refresh.as_bytes(),
            client: client.to_owned(),
            resource: resource.map(ToOwned::to_owned),
        };
        let (given, tokens) = mint()?;
        let exchanged = self.0.oauth_links().renew(renewal, tokens).await?;
        check_exchange(exchanged, client).map(|()| given)
    }

    /// Ends the link that a token of this client belongs to. Succeeds if there is none.
    pub async fn end(&self, token: &str, client: &str) -> Result<(), LinkError> {
        if let Some(hash) = Token::hash(token) {
            let links = self.0.oauth_links();
            links.end(*hash.as_bytes(), client.to_owned()).await?;
        }
        Ok(())
    }

    /// Returns the link of this access token for this resource, and the SHA-256 of its agent's token. `None` if the
    /// token is unknown or has expired.
    pub fn find(
        &self,
        access: &str,
        resource: &str,
    ) -> Result<Option<(LinkKey, [u8; 32])>, LinkError> {
        let Some(hash) = Token::hash(access) else {
            return Ok(None);
        };
        let found = self.0.oauth_links().find(*hash.as_bytes(), resource)?;
        Ok(found.map(|(link, agent)| (LinkKey(link.to_ne_bytes()), agent)))
    }

    /// Returns whether a link is known to be valid.
    pub fn is_open(&self, link: LinkKey) -> bool {
        matches!(self.0.oauth_links().is_open(link.number()), Ok(true))
    }

    /// Waits for the end of a link. The expiry of an access token ends no request that was made with it. Otherwise
    /// long-running work would end each hour, although the program has a new token by then.
    pub async fn wait_for_end(&self, link: LinkKey) {
        let mut changes = self.0.agents().changes();
        loop {
            changes.mark_unchanged();
            // If the vault cannot be read, the link is not treated as ended.
            if matches!(self.0.oauth_links().is_open(link.number()), Ok(false)) {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep(LOOK) => {}
            }
        }
    }
}

fn mint() -> Result<(IssuedTokens, NewTokens), LinkError> {
    let (access, access_hash) = Token::mint().map_err(VaultError::from)?;
    let (refresh, refresh_hash) = Token::mint().map_err(VaultError::from)?;
    let given = IssuedTokens {
        access,
        refresh,
        expires: Duration::from_millis(OAUTH_ACCESS_MS),
    };
    let tokens = NewTokens {
        access: *access_hash.as_bytes(),
        refresh: *refresh_hash.as_bytes(),
    };
    Ok((given, tokens))
}

fn check_exchange(exchanged: ExchangeOutcome, client: &str) -> Result<(), LinkError> {
    match exchanged {
        ExchangeOutcome::Done => Ok(()),
        ExchangeOutcome::Refused => Err(LinkError::Refused),
        ExchangeOutcome::OtherResource => Err(LinkError::OtherResource),
        ExchangeOutcome::Replayed => {
            let words = "a code or a refresh token was used a second time, so its link is revoked";
            tracing::warn!(client, "{words}");
            Err(LinkError::Refused)
        }
    }
}

/// Computes the challenge of a verifier (RFC 7636, S256). `None` if it is not a valid verifier.
fn challenge(verifier: &str) -> Option<String> {
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let fits = VERIFIER_CHARS.contains(&verifier.len()) && verifier.bytes().all(unreserved);
    fits.then(|| URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7636, appendix B.
    #[test]
    fn a_challenge_is_as_others_make_it() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let made = challenge(verifier);
        assert_eq!(
            made.as_deref(),
            Some("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
        );
        for bad in [
            "",
            "short",
            &"x".repeat(42),
            &"x".repeat(129),
            &"ä".repeat(30),
        ] {
            assert_eq!(challenge(bad), None, "{bad}");
        }
    }
}

//! The owner's decision on a program: which agent it becomes, or that it gets no access.

use std::fmt::Display;
use std::net::IpAddr;

use hyper::Response;
use serde_json::json;

use super::authorize::AuthorizationRequest;
use super::confirm_page::{CONFIRM_PASSWORD, confirm_page};
use super::consent_page::ConsentPage;
use super::form::OAuthParameters;
use super::redirect::host;
use super::site::IssuerOrigin;
use crate::auth::{AgentSpec, Links, LoginKey, Logins, OwnerConsent};
use crate::http::ResponseBody;
use crate::owner_actions::{OwnerCommand, OwnerContext, admit, choose_space, fit_name};
use gatewren_base::config::{LiveSettings, Overrides, Policy, Preset, Spaces};
use gatewren_base::sys::Secret;
use gatewren_store::vault::{Agent, OWNER, OauthClient, Vault};

/// The parameters of a request that the page submits again.
const SENT_AGAIN: [&str; 7] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "state",
    "code_challenge",
    "code_challenge_method",
    "resource",
];

/// The CSRF token's field in the owner's forms.
const PROOF: &str = "proof";

/// What the consent page needs.
pub struct ConsentContext<'a> {
    /// The agents and clients.
    pub vault: &'a Vault,
    /// The issuer of codes.
    pub links: &'a Links,
    /// The settings with the spaces.
    pub live: &'a LiveSettings,
    /// The server under the name of this request.
    pub site: &'a IssuerOrigin,
    /// The CSRF token of the owner's forms: no other page can know it.
    pub proof: &'a str,
    /// The key of the owner's login.
    pub login: LoginKey,
    /// The theme of the owner's page.
    pub theme: Option<&'a str>,
    /// Verifies the owner's password.
    pub logins: &'a Logins,
}

/// Why an approval does not result in an answer to the program.
enum Stop {
    /// The owner is asked again, with this message.
    Again(String),
    /// The program gets a server error.
    Failed,
}

impl ConsentContext<'_> {
    /// Shows the consent page.
    pub fn ask(
        &self,
        asked: &AuthorizationRequest,
        form: &OAuthParameters,
        wrong: Option<&str>,
    ) -> Response<ResponseBody> {
        let settings = self.live.now();
        let Ok(agent) = self.agent_of(asked) else {
            return self.failed(asked);
        };
        let parameters: Vec<(&'static str, String)> = SENT_AGAIN
            .into_iter()
            .filter_map(|name| form.get(name).map(|value| (name, value.to_owned())))
            .chain([(PROOF, self.proof.to_owned())])
            .collect();
        let wanted = form.get("name").unwrap_or(&asked.client.name);
        let name = match self.vault.agents().free_name(wanted) {
            Ok(name) => name,
            Err(cause) => {
                log_failure(&cause);
                return self.failed(asked);
            }
        };
        let question = ConsentPage {
            asked,
            agent: agent.as_ref(),
            name: &name,
            spaces: &settings.spaces,
            wrong,
            theme: self.theme,
            parameters: &parameters,
        };
        question.to_response()
    }

    /// Carries out the owner's decision.
    pub async fn decide(
        &self,
        asked: &AuthorizationRequest,
        form: &OAuthParameters,
        from: IpAddr,
    ) -> Response<ResponseBody> {
        if Secret::new(form.get(PROOF).unwrap_or_default()) != Secret::new(self.proof) {
            let words = "this page is from an earlier sign-in; check it and decide again";
            return self.ask(asked, form, Some(words));
        }
        match form.get("decision") {
            Some("approve") => {}
            Some("refuse") => {
                let words = "the owner of the server refused";
                let more = [("error", "access_denied"), ("error_description", words)];
                return asked.answer(self.site, &more);
            }
            _ => return self.ask(asked, form, Some("choose Approve or Refuse")),
        }
        if let Some(page) = self.confirm(asked, form, from).await {
            return page;
        }
        match self.approve(asked, form, from).await {
            Ok(answer) => answer,
            Err(Stop::Again(words)) => self.ask(asked, form, Some(&words)),
            Err(Stop::Failed) => self.failed(asked),
        }
    }

    /// Returns the page that asks for the password, unless the owner has entered it recently: the next step gives
    /// access.
    async fn confirm(
        &self,
        asked: &AuthorizationRequest,
        form: &OAuthParameters,
        from: IpAddr,
    ) -> Option<Response<ResponseBody>> {
        let wrong = match form.get(CONFIRM_PASSWORD) {
            Some(password) => {
                let confirmed = self.logins.confirm(self.login, password, from).await;
                Some(confirmed.err()?.to_string())
            }
            None => match self.logins.has_confirmed(self.login) {
                Ok(true) => return None,
                Ok(false) => None,
                Err(cause) => Some(cause.to_string()),
            },
        };
        Some(confirm_page(asked, form, wrong.as_deref(), self.theme))
    }

    async fn approve(
        &self,
        asked: &AuthorizationRequest,
        form: &OAuthParameters,
        from: IpAddr,
    ) -> Result<Response<ResponseBody>, Stop> {
        let owner = OwnerContext {
            vault: self.vault,
            by: OWNER.to_owned(),
            from: from.to_string(),
        };
        let known = self.agent_of(asked)?;
        let agent = match (known, form.get("agent")) {
            (Some(agent), Some(shown)) if agent.id == shown => agent,
            (None, None) => self.create_agent(asked, form, &owner).await?,
            _ => {
                let words = "the agent has changed in the meantime; check it and decide again";
                return Err(Stop::Again(words.to_owned()));
            }
        };
        let resource = self.site.resource();
        let command = OwnerCommand {
            command: "connect approve",
            target: Some(&agent.id),
            what: json!({
                "name": agent.name, "client": asked.client.id, "client_name": asked.client.name,
                "answer_to": host(&asked.redirect_uri), "resource": resource,
            }),
            change: None,
        };
        let agreement = OwnerConsent {
            agent: &agent,
            client: &asked.client.id,
            resource: &resource,
            redirect_uri: &asked.redirect_uri,
            challenge: &asked.challenge,
        };
        let begin = owner.run_audited(command, self.links.begin(agreement));
        let code = begin.await.map_err(|cause| log_failure(&cause))?;
        Ok(asked.answer(self.site, &[("code", code.expose())]))
    }

    /// Creates an agent with the owner's choices. Its own token is discarded; it was never shown to anyone.
    async fn create_agent(
        &self,
        asked: &AuthorizationRequest,
        form: &OAuthParameters,
        owner: &OwnerContext<'_>,
    ) -> Result<Agent, Stop> {
        let admission = admission(form, &self.live.now().spaces).map_err(Stop::Again)?;
        let made = admit(owner, admission).await;
        let (agent, _) = made.map_err(Stop::Again)?;
        let client = OauthClient {
            id: asked.client.id.clone(),
            name: asked.client.name.clone(),
            redirect_uris: match asked.client.metadata_host {
                Some(_) => Vec::new(),
                None => asked.client.redirect_uris.clone(),
            },
            agent: Some(agent.id.clone()),
        };
        let noted = self.vault.oauth_clients().note_agent(client).await;
        noted.map_err(|cause| log_failure(&cause))?;
        Ok(agent)
    }

    /// The agent that the owner has created for a program, unless it was revoked or has expired.
    fn agent_of(&self, asked: &AuthorizationRequest) -> Result<Option<Agent>, Stop> {
        let Some(id) = &asked.client.agent else {
            return Ok(None);
        };
        let agents = self.vault.agents().list();
        let mut agents = agents.map_err(|cause| log_failure(&cause))?.into_iter();
        Ok(agents.find(|agent| agent.id == *id && agent.has_valid_token()))
    }

    fn failed(&self, asked: &AuthorizationRequest) -> Response<ResponseBody> {
        let words = "the server cannot answer now; try again soon";
        let more = [("error", "server_error"), ("error_description", words)];
        asked.answer(self.site, &more)
    }
}

fn admission(form: &OAuthParameters, spaces: &Spaces) -> Result<AgentSpec, String> {
    let name = fit_name(form.get("name").unwrap_or_default())?;
    let preset = form.get("policy").unwrap_or_default();
    let preset: Preset = preset.parse().map_err(|_| "choose a policy")?;
    Ok(AgentSpec {
        name,
        policy: Policy {
            preset,
            overrides: Overrides::default(),
        },
        space: choose_space(form.get("space"), spaces)?,
        expires_ms: None,
    })
}

fn log_failure(cause: &dyn Display) -> Stop {
    tracing::error!("carrying out the owner's decision on a program failed: {cause}");
    Stop::Failed
}

//! The table of paths, their access rules, and how one request is served.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use super::connect::{GuardedOAuth, OAuthEndpoint};
use super::pair::PairingEndpoint;
use super::scrape::MetricsScrape;
use crate::transport::{Endpoint, HttpSse, RequestAnswer};
use gatewren_base::config::{LiveSettings, Preset};
use gatewren_base::telemetry::{Exposition, Metrics, redact_text};
use gatewren_gate::guard::{
    Admitted, ClientRequestId, Guard, PageCredentials, Refusal, RequiredCredentials, expose,
    preflight,
};
use gatewren_gate::http::{ResponseBody, Upload, empty, json as json_response, text};
use gatewren_owner::OwnerSite;

/// What answers at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RouteTarget {
    Mcp,
    Stream,
    Message,
    Metrics,
    Health,
    Discovery,
    Login,
    Logout,
    Pair,
    OAuth(OAuthEndpoint),
    Home,
    Owner,
}

/// A path: its name, its access rule, what answers there, and the allowed methods.
type Row = (&'static str, RequiredCredentials, RouteTarget, &'static str);

/// Every path that answers; the health check is at `access.health_path`. All others get a plain 404 in JSON: clients that
/// have a token look for OAuth metadata under `/.well-known`, and anything but a 404 there misleads them. So the paths of
/// OAuth contain `connect`.
#[rustfmt::skip]
const PATHS: &[Row] = &[
    ("/mcp",             RequiredCredentials::Agent, RouteTarget::Mcp,       "POST, GET, DELETE, OPTIONS"),
    ("/sse",             RequiredCredentials::Agent, RouteTarget::Stream,    "GET, OPTIONS"),
    ("/message",         RequiredCredentials::Agent, RouteTarget::Message,   "POST, OPTIONS"),
    ("/metrics",         RequiredCredentials::Metrics, RouteTarget::Metrics, "GET, OPTIONS"),
    ("/login",           RequiredCredentials::Open,  RouteTarget::Login,     "POST, OPTIONS"),
    ("/logout",          RequiredCredentials::Open,  RouteTarget::Logout,    "POST, OPTIONS"),
    ("/pair",            RequiredCredentials::Open,  RouteTarget::Pair,      "POST, OPTIONS"),
    ("/health",          RequiredCredentials::Open,  RouteTarget::Health,    "GET, HEAD, OPTIONS"),
    ("/.well-known/mcp", RequiredCredentials::Open,  RouteTarget::Discovery, "GET, HEAD, OPTIONS"),
    ("/connect/mcp",       RequiredCredentials::Connect, RouteTarget::Mcp,                    "POST, GET, DELETE, OPTIONS"),
    ("/connect/authorize", RequiredCredentials::Consent, RouteTarget::OAuth(OAuthEndpoint::Authorize), "GET, POST, OPTIONS"),
    ("/connect/token",     RequiredCredentials::Open,    RouteTarget::OAuth(OAuthEndpoint::Token),     "POST, OPTIONS"),
    ("/connect/register",  RequiredCredentials::Open,    RouteTarget::OAuth(OAuthEndpoint::Register),  "POST, OPTIONS"),
    ("/connect/revoke",    RequiredCredentials::Open,    RouteTarget::OAuth(OAuthEndpoint::Revoke),    "POST, OPTIONS"),
    ("/.well-known/oauth-protected-resource/connect/mcp", RequiredCredentials::Open, RouteTarget::OAuth(OAuthEndpoint::Resource), "GET, HEAD, OPTIONS"),
    // The path of RFC 8414, and those where clients that know OpenID look.
    ("/.well-known/oauth-authorization-server/connect",   RequiredCredentials::Open, RouteTarget::OAuth(OAuthEndpoint::Server),   "GET, HEAD, OPTIONS"),
    ("/.well-known/openid-configuration/connect",         RequiredCredentials::Open, RouteTarget::OAuth(OAuthEndpoint::Server),   "GET, HEAD, OPTIONS"),
    ("/connect/.well-known/openid-configuration",         RequiredCredentials::Open, RouteTarget::OAuth(OAuthEndpoint::Server),   "GET, HEAD, OPTIONS"),
    ("/",                RequiredCredentials::Open,  RouteTarget::Home,      "GET, HEAD"),
    ("/owner",           RequiredCredentials::Owner, RouteTarget::Owner,     "GET, HEAD, POST"),
];

/// The paths where the cookie of an agent is accepted from a page of `access.allowed_origins`.
const COOKIE_PATHS: [&str; 5] = ["/mcp", "/sse", "/message", "/login", "/logout"];

/// The prefix of the owner's pages.
const OWNERS: &str = "/owner/";

/// Everything behind the socket.
pub struct Front {
    /// Authenticates and checks requests.
    pub guard: Arc<Guard>,
    /// Answers at `/mcp`.
    pub endpoint: Arc<Endpoint>,
    /// Answers at `/sse` and `/message`, if the owner has enabled that.
    pub http_sse: HttpSse,
    /// Answers programs that request access; `None` without an owner.
    pub connect: Option<GuardedOAuth>,
    /// Exchanges codes for tokens; `None` without an owner.
    pub pairing: Option<PairingEndpoint>,
    /// The owner's pages; `None` without an owner.
    pub site: Option<OwnerSite>,
    /// The gauges that a scrape gets besides the counters; `None` without stores.
    pub scrape: Option<MetricsScrape>,
    /// The settings in force.
    pub live: LiveSettings,
    /// The counters.
    pub metrics: Arc<Metrics>,
}

impl Front {
    /// Answers one request.
    pub async fn answer(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Response<ResponseBody> {
        self.metrics.request();
        let client_request = ClientRequestId::read(request.headers());
        let origin = request.headers().get(ORIGIN).cloned();
        let (mut head, body) = request.into_parts();
        if let Some(id) = &client_request {
            head.extensions.insert(id.clone());
        }
        let mut response = if let Err(refusal) = self.guard.check_head(&head, peer) {
            // A page of a rejected origin may not even read the reason.
            self.refuse(&refusal, peer, client_request.as_ref())
        } else {
            let credentials = self.page_credentials(head.uri.path(), origin.as_ref());
            let request = Request::from_parts(head, body);
            let answered = self.handle_request(request, peer).await;
            let mut response = answered
                .unwrap_or_else(|refusal| self.refuse(&refusal, peer, client_request.as_ref()));
            expose(origin.as_ref(), credentials, &mut response);
            response
        };
        if let Some(id) = client_request {
            id.echo(response.headers_mut());
        }
        response
    }

    /// Whether a page of this origin may send its user's cookie to this path.
    fn page_credentials(&self, path: &str, origin: Option<&HeaderValue>) -> PageCredentials {
        let origin = origin.and_then(|origin| origin.to_str().ok());
        let is_listed = |origin: &str| self.guard.hosts().lists_origin(origin);
        if COOKIE_PATHS.contains(&path) && origin.is_some_and(is_listed) {
            PageCredentials::Allowed
        } else {
            PageCredentials::Denied
        }
    }

    async fn handle_request(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let found = self.find(&request);
        let (required, target, methods) =
            found.map_err(|refusal| self.guard.charge(peer, refusal))?;
        if request.method() == Method::OPTIONS {
            self.guard.charge_stranger(peer)?;
            return Ok(options(&request, methods));
        }
        match required {
            RequiredCredentials::Open | RequiredCredentials::Consent => match target {
                // Boxed: rare requests do not make the future of the others larger.
                RouteTarget::Login => Box::pin(self.guard.login(request, peer)).await,
                RouteTarget::Logout => Box::pin(self.guard.logout(request, peer)).await,
                RouteTarget::Pair => Box::pin(self.serve_pairing(request, peer)).await,
                RouteTarget::OAuth(part) => Box::pin(self.serve_connect(part, request, peer)).await,
                _ => {
                    self.guard.charge_stranger(peer)?;
                    self.open(target, &request)
                }
            },
            // Boxed: pages are rare too.
            RequiredCredentials::Owner => Ok(Box::pin(self.page(request, peer)).await),
            // Boxed: scrapes are rare as well.
            RequiredCredentials::Metrics => Box::pin(self.serve_metrics(request, peer)).await,
            RequiredCredentials::Agent | RequiredCredentials::Connect => {
                let admitted = self.guard.admit(required, request, peer).await?;
                let answered = self.admitted(target, &admitted);
                Ok(answered.response().await)
            }
        }
    }

    async fn serve_pairing(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let pairing = self.pairing.as_ref().ok_or_else(nothing)?;
        pairing.answer(request, peer).await
    }

    async fn serve_connect(
        &self,
        part: OAuthEndpoint,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let connect = self.connect.as_ref().ok_or_else(nothing)?;
        connect.answer(part, request, peer).await
    }

    /// Answers with one of the owner's pages; a rejection by the guard is shown as a page too.
    async fn page(&self, request: Request<Upload>, peer: SocketAddr) -> Response<ResponseBody> {
        let client_request = request.extensions().get::<ClientRequestId>().cloned();
        let visit = self.guard.visit(request, peer).await;
        match (visit, &self.site) {
            (Ok(visit), Some(site)) => site.answer(visit).await,
            (Err(refusal), Some(_)) => {
                let _ = self.refuse(&refusal, peer, client_request.as_ref());
                OwnerSite::refuse(&refusal)
            }
            (_, None) => self.refuse(&nothing(), peer, client_request.as_ref()),
        }
    }

    fn admitted(&self, target: RouteTarget, admitted: &Admitted) -> RequestAnswer {
        match target {
            RouteTarget::Stream => self.http_sse.stream(admitted).into(),
            RouteTarget::Message => self.http_sse.message(admitted).into(),
            _ => self.endpoint.answer(admitted),
        }
    }

    /// Finds the row for a request's path and method.
    fn find(
        &self,
        request: &Request<Upload>,
    ) -> Result<(RequiredCredentials, RouteTarget, &'static str), Refusal> {
        let path = request.uri().path();
        let path = if path.starts_with(OWNERS) {
            "/owner"
        } else {
            path
        };
        let is_at = |(known, _, target, _): &&Row| match target {
            RouteTarget::Health => self.is_health_path(path),
            _ => *known == path,
        };
        let known = PATHS.iter().find(is_at);
        let known = known.filter(|(_, required, target, _)| self.offers(*required, *target));
        let Some((_, required, target, methods)) = known else {
            return Err(nothing());
        };
        let method = request.method().as_str();
        if *target == RouteTarget::Home && !methods.contains(method) {
            // Clients of old revisions try other methods here; they get the same 404 as before this page existed.
            return Err(nothing());
        }
        if methods.split(", ").any(|known| known == method) {
            Ok((*required, *target, *methods))
        } else {
            Err(Refusal::not_allowed(methods))
        }
    }

    fn open(
        &self,
        target: RouteTarget,
        request: &Request<Upload>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let with_version = || self.live.read(|settings| settings.access.health_version);
        let body = match target {
            RouteTarget::Home => return home(request),
            RouteTarget::Health if with_version() => {
                json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") })
            }
            RouteTarget::Health => json!({ "status": "ok" }),
            _ => json!({ "mcp_endpoint": "/mcp" }),
        };
        Ok(json_response(StatusCode::OK, body.to_string().into_bytes()))
    }

    /// Whether the owner has the health check at this path.
    fn is_health_path(&self, path: &str) -> bool {
        self.live
            .read(|settings| settings.access.health_path == path)
    }

    /// Whether a path is enabled here.
    fn offers(&self, required: RequiredCredentials, target: RouteTarget) -> bool {
        if required == RequiredCredentials::Connect || matches!(target, RouteTarget::OAuth(_)) {
            return self.connect.as_ref().is_some_and(GuardedOAuth::is_on);
        }
        match target {
            RouteTarget::Stream | RouteTarget::Message => {
                self.live.read(|settings| settings.access.http_sse)
            }
            RouteTarget::Login | RouteTarget::Logout => self.guard.has_logins(),
            RouteTarget::Pair => self.pairing.is_some(),
            RouteTarget::Home | RouteTarget::Owner => self.site.is_some(),
            _ => true,
        }
    }

    /// The metrics in Prometheus' text format, for the metrics token or for an agent that may see everything.
    /// They name tools and agents that others may not know, and count the calls of all.
    async fn serve_metrics(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (head, body) = request.into_parts();
        if self.guard.is_scraper(&head, peer).await? {
            if head.headers.contains_key(AUTHORIZATION) {
                body.presence().identify();
            }
        } else {
            let request = Request::from_parts(head, body);
            let admitted = self
                .guard
                .admit(RequiredCredentials::Agent, request, peer)
                .await?;
            let who = admitted.who();
            if who.preset() != Preset::Admin || !who.reach().is_everything() {
                let words = "/metrics needs the token that `gatewren metrics token` prints, or an agent with the \
                             policy admin for the whole server";
                return Err(Refusal::new(StatusCode::FORBIDDEN, "admin_required", words));
            }
        }
        let page = if let Some(scrape) = &self.scrape {
            scrape.page(&self.metrics).await
        } else {
            let mut page = Exposition::default();
            self.metrics.render(&mut page);
            page.into_text()
        };
        let mut response = text(page);
        let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, media);
        Ok(response)
    }

    fn refuse(
        &self,
        refusal: &Refusal,
        peer: SocketAddr,
        client_request: Option<&ClientRequestId>,
    ) -> Response<ResponseBody> {
        self.metrics.count_refusal(refusal.error);
        tracing::debug!(
            %peer,
            status = refusal.status.as_u16(),
            why = refusal.error,
            client_request = client_request.map(|id| redact_text(id.as_str())).as_deref(),
            "refused"
        );
        refusal.to_response()
    }
}

/// Answers a preflight, or a plain OPTIONS request for the methods.
fn options(request: &Request<Upload>, methods: &'static str) -> Response<ResponseBody> {
    if request.headers().contains_key(ORIGIN) {
        return preflight(request.headers(), methods);
    }
    let mut response = empty(StatusCode::NO_CONTENT);
    let allow = HeaderValue::from_static(methods);
    response.headers_mut().insert(ALLOW, allow);
    response
}

/// Redirects browsers to the owner's pages; other clients get a 404.
fn home(request: &Request<Upload>) -> Result<Response<ResponseBody>, Refusal> {
    let accepts = request.headers().get_all(ACCEPT).iter();
    let mut accepts = accepts.filter_map(|value| value.to_str().ok());
    if !accepts.any(|accepted| accepted.contains("text/html")) {
        return Err(nothing());
    }
    let mut response = empty(StatusCode::SEE_OTHER);
    let to = HeaderValue::from_static("/owner");
    response.headers_mut().insert(LOCATION, to);
    Ok(response)
}

fn nothing() -> Refusal {
    let words = "not found; the MCP endpoint is /mcp";
    Refusal::new(StatusCode::NOT_FOUND, "not_found", words)
}

#[cfg(test)]
mod tests {
    use gatewren_base::config::may_be_health_path;

    use super::*;

    #[test]
    fn the_health_check_can_be_at_no_path_of_another_target() {
        for (path, _, target, _) in PATHS {
            let is_health = *target == RouteTarget::Health;
            assert_eq!(may_be_health_path(path), is_health, "{path}");
        }
    }
}

//! The routes of the owner's page.

use std::net::IpAddr;
use std::time::Duration;

use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, STRICT_TRANSPORT_SECURITY};
use hyper::{Method, Response, StatusCode};
use maud::html;

use super::frame::{OwnerPage, redirect};
use super::header::Tab;
use super::page_error::PageError;
use super::site::{OwnerSite, PageResult, SignedInRequest};
use super::theme::Theme;
use super::{
    agent, agent_new, agents, alerts, asset, audit, change, connect, container_action,
    container_list, container_page, decide, events, help, host_page, inbox, logins, notifications,
    parts, settings, sign_in, texts,
};
use gatewren_gate::guard::{OwnerRequest, Refusal};
use gatewren_gate::http::{ResponseBody, empty};

impl OwnerSite {
    /// Answers a request.
    pub async fn answer(&self, visit: OwnerRequest) -> Response<ResponseBody> {
        let made = match asset::asset(&visit) {
            Some(asset) => Ok(asset),
            None => self.build_page(&visit).await,
        };
        let mut response = made.unwrap_or_else(|error| match error {
            PageError::SignedOut => sign_in::ask(&visit),
            error => self.render_error_page(&visit, &error),
        });
        let time = self.live.read(|settings| settings.access.hsts);
        if let Some(value) = strict_transport(visit.host(), time) {
            let headers = response.headers_mut();
            headers.insert(STRICT_TRANSPORT_SECURITY, value);
        }
        response
    }

    /// Renders a rejection of the guard as a page.
    pub fn refuse(refusal: &Refusal) -> Response<ResponseBody> {
        let mut page = plain_page(refusal.status, &refusal.message);
        let given = refusal.to_response();
        for (name, value) in given.headers() {
            if name != CONTENT_TYPE && name != CONTENT_LENGTH {
                page.headers_mut().insert(name.clone(), value.clone());
            }
        }
        page
    }

    async fn build_page(&self, visit: &OwnerRequest) -> PageResult {
        let path = visit.path().strip_prefix("/owner").unwrap_or_default();
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let posts = *visit.method() == Method::POST;
        // Routes that need no sign-in.
        match (posts, path.as_slice()) {
            (false, ["sign-in"]) => return sign_in::page(self, visit),
            (true, ["sign-in"]) => return sign_in::sign_in(self, visit).await,
            (false, ["set-up"]) => return sign_in::set_up_page(self, visit),
            (true, ["set-up"]) => return sign_in::set_up(self, visit).await,
            (false, ["connect", "authority", ext]) => return connect::authority(self, visit, ext),
            _ => {}
        }
        // Without this status, a page that is still open would reconnect forever (WHATWG HTML, 9.2.3).
        if visit.session().is_none() && path == ["events"] {
            return Ok(empty(StatusCode::NO_CONTENT));
        }
        let session = visit.session().ok_or(PageError::SignedOut)?;
        let asked = SignedInRequest {
            stamp: self.stamp(),
            site: self,
            visit,
            session,
        };
        match (posts, path.as_slice()) {
            (false, []) => self.start(),
            (false, ["home"]) => host_page::page(&asked).await,
            (false, ["inbox"]) => inbox::page(&asked),
            (false, ["containers"]) => container_list::page(&asked),
            (true, ["alerts"]) => alerts::mark_seen(&asked).await,
            (false, ["containers", name]) => container_page::page(&asked, name).await,
            (true, ["containers", name]) => container_action::act(&asked, name).await,
            (false, ["events"]) => events::events(&asked),
            (false, ["header"]) => asked.header(),
            (true, ["changes"]) => decide::together(&asked).await,
            (false, ["changes", id]) => change::page(&asked, id),
            (true, ["changes", id]) => decide::one(&asked, id).await,
            (true, ["grants", id]) => decide::end_grant(&asked, id).await,
            (false, ["agents"]) => agents::page(&asked).await,
            (false, ["agents", "new"]) => agent_new::page(&asked),
            (true, ["agents"]) => agent_new::add(&asked).await,
            (false, ["agents", id]) => agent::page(&asked, id).await,
            (true, ["agents", id]) => agent::change(&asked, id).await,
            (false, ["box" | "audit"] | ["audit", _]) => Ok(moved(visit, &present_path(&path))),
            (false, ["activity"]) => audit::page(&asked).await,
            (false, ["activity", "export"]) => audit::export(&asked),
            (false, ["activity", call]) => audit::call(&asked, call),
            (false, ["settings"]) => settings::page(&asked),
            (false, ["help"]) => help::page(&asked),
            (false, ["help", name]) => help::manual(&asked, name),
            (true, ["theme"]) => settings::choose_theme(&asked),
            (false, ["connect"]) => connect::page(&asked),
            (_, ["notifications"]) => notifications::answer(&asked, posts).await,
            (false, ["logins"]) => logins::page(&asked),
            (true, ["logins"]) => logins::end(&asked).await,
            (true, ["sign-out"]) => sign_in::sign_out(&asked).await,
            _ => Err(PageError::Absent),
        }
    }

    fn render_error_page(&self, visit: &OwnerRequest, error: &PageError) -> Response<ResponseBody> {
        let content = html! {
            h1 { (texts::TROUBLE) }
            (parts::notice(error.words(), true))
            p { a href="/owner" { (texts::AGAIN) } }
            @let path = visit.path().trim_start_matches("/owner");
            @if visit.session().is_some() { p { a href=(help::section_of(path)) { "What the manual says about it" } } }
        };
        let stamp = self.stamp();
        let asked = visit.session().map(|session| SignedInRequest {
            stamp: stamp.clone(),
            site: self,
            visit,
            session,
        });
        let header = asked
            .as_ref()
            .and_then(|asked| asked.page_header(Tab::Home).ok());
        let page = OwnerPage {
            title: texts::TROUBLE,
            stamp: header.is_some().then_some(stamp.as_str()),
            header,
            theme: Theme::of(visit),
            is_live: false,
            content,
        };
        page.response(error.status())
    }

    /// Redirects to the inbox if something waits there.
    fn start(&self) -> PageResult {
        let to = match self.waiting()? {
            0 => "/owner/home",
            _ => "/owner/inbox",
        };
        Ok(redirect(to))
    }
}

/// The present path of one of an earlier version.
fn present_path(path: &[&str]) -> String {
    match path {
        ["audit"] => "activity".to_owned(),
        ["audit", call, ..] => format!("activity/{call}"),
        _ => "home".to_owned(),
    }
}

/// Redirects from the path of an earlier version to `path`, with the same query.
fn moved(visit: &OwnerRequest, path: &str) -> Response<ResponseBody> {
    let query = visit.target().split_once('?');
    let query = query.map_or(String::new(), |(_, query)| format!("?{query}"));
    redirect(&format!("/owner/{path}{query}"))
}

/// Returns the header that makes browsers use only TLS for this host (RFC 6797). It never covers subdomains, which
/// may be other machines. `None` for an address, where the header has no effect, and for localhost, where it would
/// break plain HTTP of all other services on the reader's machine.
fn strict_transport(host: &str, time: Duration) -> Option<HeaderValue> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_local = name == "localhost" || name.ends_with(".localhost");
    let is_address = name.starts_with('[') || name.parse::<IpAddr>().is_ok();
    if is_local || is_address {
        return None;
    }
    HeaderValue::from_str(&format!("max-age={}", time.as_secs())).ok()
}

/// Renders a page for a visitor who may not be signed in.
fn plain_page(status: StatusCode, words: &str) -> Response<ResponseBody> {
    let page = OwnerPage {
        title: texts::TROUBLE,
        header: None,
        theme: Theme::System,
        stamp: None,
        is_live: false,
        content: html! {
            h1 { (texts::TROUBLE) }
            (parts::notice(words, true))
            p { a href="/owner" { (texts::AGAIN) } }
        },
    };
    page.response(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_used_over_tls_alone_and_no_address_and_no_localhost_is() {
        let header = |host: &str| strict_transport(host, Duration::from_secs(5));
        for host in [
            "box.lan",
            "box.lan:8443",
            "BOX.local.:8443",
            "localhost.lan",
        ] {
            assert_eq!(header(host).unwrap(), "max-age=5", "{host}");
        }
        for host in [
            "localhost",
            "LocalHost:8443",
            "a.localhost:8443",
            "127.0.0.1:8443",
            "192.168.1.2",
            "[::1]:8443",
            "[fd00::1]",
        ] {
            assert_eq!(header(host), None, "{host}");
        }
        assert_eq!(
            strict_transport("box.lan", Duration::ZERO).unwrap(),
            "max-age=0"
        );
    }
}

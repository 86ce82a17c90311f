//! The shared state of the owner's pages, and an authenticated request.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hyper::{Response, StatusCode};
use maud::html;
use serde_json::Value;

use super::frame::{OwnerPage, redirect};
use super::header::{PageHeader, Tab};
use super::owner_host::OwnerHost;
use super::page_error::PageError;
use super::problems::{ServerProblem, problems};
use super::samples::Samples;
use super::theme::Theme;
use super::{parts, texts};
use gatewren_base::config::{LiveSettings, Spaces};
use gatewren_base::sys::exact_line;
use gatewren_gate::auth::Logins;
use gatewren_gate::guard::{OwnerRequest, OwnerSession};
use gatewren_gate::http::ResponseBody;
use gatewren_gate::owner_actions::OwnerContext;
use gatewren_host::sampler::Readings;
use gatewren_store::state::{State, StateLogReader};
use gatewren_store::vault::{AuditReaders, ChangeStatus, OWNER, OfferedTool, Vault};
use gatewren_tools::notify::NotificationSender;

/// The shared state of all pages.
pub struct OwnerSite {
    /// Whether the server is invented.
    pub is_demo: bool,
    /// The database of agents, changes and the audit.
    pub vault: Vault,
    /// Reads the audit.
    pub audit: Arc<AuditReaders>,
    /// The state document of the host.
    pub state: State,
    /// Its log.
    pub state_log: StateLogReader,
    /// The current settings.
    pub live: LiveSettings,
    /// The owner's sessions.
    pub logins: Arc<Logins>,
    /// The host.
    pub host: OwnerHost,
    /// Sends messages to the owner.
    pub notification_sender: NotificationSender,
    /// The samples of the last hour.
    pub samples: Arc<Samples>,
    /// The number of pages that are notified of changes.
    pub readers: Arc<AtomicU32>,
}

/// A page, or the error that prevented it.
pub type PageResult = Result<Response<ResponseBody>, PageError>;

impl OwnerSite {
    /// Samples the host with each reading of the containers, while it is polled.
    pub fn keep_samples(&self, readings: Readings) -> impl Future<Output = ()> + use<> {
        let (samples, host) = (self.samples.clone(), self.host.host.clone());
        async move { samples.keep(host, readings).await }
    }

    /// The number of changes that wait for the owner.
    pub fn waiting(&self) -> Result<usize, PageError> {
        let open = self.vault.changes().list(true)?;
        let waits = open
            .iter()
            .filter(|change| change.status == ChangeStatus::Pending);
        Ok(waits.count())
    }

    /// The current problems.
    pub fn problems(&self) -> Vec<ServerProblem> {
        problems(&self.state.document().root, self.samples.fullest_disk())
    }

    /// Returns a stamp that changes with any data that a page may show.
    pub fn stamp(&self) -> String {
        let inbox = *self.vault.changes().watch_inbox().borrow();
        let agents = *self.vault.agents().changes().borrow();
        let state = *self.state.watch_revision().borrow();
        let samples = *self.samples.watch_samples().borrow();
        format!("{inbox}.{agents}.{state}.{samples}")
    }

    /// The spaces of the settings.
    pub fn spaces(&self) -> Spaces {
        self.live.read(|settings| settings.spaces.clone())
    }

    /// The path of a file in the state directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.live.read(|settings| settings.state_dir.join(name))
    }

    /// The offered tools.
    pub fn tools(&self) -> Result<Vec<OfferedTool>, PageError> {
        Ok(self.vault.offer().tools()?)
    }
}

/// An authenticated request of the owner.
pub struct SignedInRequest<'a> {
    /// The stamp before any data was read for the page.
    pub stamp: String,
    /// The shared state.
    pub site: &'a OwnerSite,
    /// The request.
    pub visit: &'a OwnerRequest,
    /// The owner's session.
    pub session: &'a OwnerSession,
}

impl SignedInRequest<'_> {
    /// Renders a page for the owner.
    pub fn page(&self, tab: Tab, title: &str, live: bool, content: maud::Markup) -> PageResult {
        let page = OwnerPage {
            title,
            header: Some(self.page_header(tab)?),
            theme: Theme::of(self.visit),
            stamp: Some(self.stamp.as_str()),
            is_live: live,
            content,
        };
        Ok(page.response(StatusCode::OK))
    }

    /// Collects the content of the header.
    pub fn page_header(&self, tab: Tab) -> Result<PageHeader<'_>, PageError> {
        let document = self.site.state.document();
        let server = document.root.pointer("/public/serverInfo/hostname");
        Ok(PageHeader {
            tab,
            server: exact_line(server.and_then(Value::as_str).unwrap_or(self.visit.host())),
            waiting: self.site.waiting()?,
            problems: self.site.problems().len(),
            is_demo: self.site.is_demo,
            theme: Theme::of(self.visit),
            session: self.session,
        })
    }

    /// Renders only the header, for the update of a page whose content stays.
    pub fn header(&self) -> PageResult {
        let tab = self.visit.query("tab").unwrap_or_default();
        self.page(
            Tab::named(&tab).ok_or(PageError::Absent)?,
            &tab,
            true,
            html! {},
        )
    }

    /// The owner at work, for an action.
    pub fn owner_context(&self) -> OwnerContext<'_> {
        OwnerContext {
            vault: &self.site.vault,
            by: OWNER.to_owned(),
            from: self.visit.from().to_string(),
        }
    }

    /// Renders the confirmation of the previous action, by its name in the query.
    pub fn render_notice(&self) -> maud::Markup {
        let name = self.visit.query("said").unwrap_or_default();
        let notice = texts::NOTICES.iter().find(|(known, _)| *known == name);
        html! { @if let Some((_, words)) = notice { (parts::notice(words, false)) } }
    }
}

/// Redirects after an action; `name` is that of the confirmation to show.
pub fn redirect_with_notice(path: &str, name: &str) -> Response<ResponseBody> {
    redirect(&format!("{path}?said={name}"))
}

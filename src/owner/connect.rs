//! How clients connect: the address, the certificate authority, and how each system is made to trust it.

use std::fs;
use std::ops::Range;
use std::path::Path;

use hyper::Response;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use maud::{Markup, html};

use super::frame::add_guards;
use super::header::Tab;
use super::page_error::PageError;
use super::profile::profile;
use super::site::{OwnerSite, PageResult, SignedInRequest};
use super::texts;
use gatewren_base::config::TlsMode;
use gatewren_base::sys::{own_uid, sanitize};
use gatewren_gate::guard::OwnerRequest;
use gatewren_gate::http::{CertificateFacts, ResponseBody};
use gatewren_gate::owner_actions::{AUTHORITY_PEM, SYSTEMS, TrustSteps};

/// The authority's certificate in the state directory.
const AUTHORITY_ON_SERVER: &str = "tls/ca.pem";

/// The ids of the users of services. On Debian, people have ids from 1000 on.
const SERVICE_USERS: Range<u32> = 1..1000;

/// The authority's certificate, as clients download it.
pub struct AuthorityFile {
    pem: String,
    facts: CertificateFacts,
}

impl AuthorityFile {
    /// Its fingerprint, as openssl prints it.
    pub fn fingerprint(&self) -> String {
        self.facts.fingerprint()
    }
}

/// The MCP URL, with the host name that the visitor used.
pub fn mcp_url(visit: &OwnerRequest) -> String {
    format!("https://{}/mcp", visit.host())
}

/// The MCP URL for programs without a token.
fn connect_url(visit: &OwnerRequest) -> String {
    format!("https://{}/connect/mcp", visit.host())
}

/// Reads the certificate of the own authority; `None` if the certificate is supplied or cannot be read.
pub fn authority_file(site: &OwnerSite) -> Option<AuthorityFile> {
    let own = site.live.read(|settings| settings.tls.mode == TlsMode::Own);
    let pem = own
        .then(|| fs::read_to_string(site.file(AUTHORITY_ON_SERVER)).ok())
        .flatten()?;
    let facts = CertificateFacts::in_pem(pem.as_bytes())?;
    Some(AuthorityFile { pem, facts })
}

/// Renders the page.
pub fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let authority = authority_file(asked.site);
    let host = asked.visit.host();
    let content = html! {
        h1 { (texts::CONNECT) }
        section {
            h2 { (texts::ADDRESS_OF_MCP) }
            pre id="url" { (mcp_url(asked.visit)) }
            button type="button" class="plain" data-copy="url" data-done=(texts::COPIED) hidden { (texts::COPY) }
            p { (texts::TOKEN_FIRST) " " a href="/owner/agents" { (texts::AGENTS) } }
            @if asked.site.live.read(|settings| settings.oauth.enabled) {
                p { (texts::WITHOUT_TOKEN) }
                pre { (connect_url(asked.visit)) }
            }
        }
        @match &authority {
            None => section { p { (texts::ISSUER_IS_KNOWN) } },
            Some(authority) => {
                section {
                    h2 { (texts::AUTHORITY) }
                    p { (texts::AUTHORITY_WHY) }
                    p class="row" {
                        a class="button plain" href="/owner/connect/authority/pem" download="gatewren-ca.pem" { "PEM" }
                        a class="button plain" href="/owner/connect/authority/der" download="gatewren-ca.crt" { "DER (Android, Windows)" }
                        a class="button plain" href="/owner/connect/authority/mobileconfig" { ".mobileconfig (iPhone, iPad, Mac)" }
                    }
                    p { (texts::FINGERPRINT) }
                    pre { (authority.fingerprint()) }
                    p class="soft" { (texts::FINGERPRINT_HOW) }
                    pre { (fingerprint_command(&asked.site.file(AUTHORITY_ON_SERVER))) }
                }
                section { h2 { (texts::PER_SYSTEM) } (per_system(host)) }
            }
        }
    };
    asked.page(Tab::Settings, texts::CONNECT, false, content)
}

/// The command that prints the fingerprint on the server. The person who started a trial can read the file; only
/// root can read the files of a service.
fn fingerprint_command(file: &Path) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    let mut file = sanitize(&file.to_string_lossy());
    if !file.chars().all(plain) {
        file = format!("'{}'", file.replace('\'', "'\\''"));
    }
    let root = if SERVICE_USERS.contains(&own_uid()) {
        "sudo "
    } else {
        ""
    };
    format!("{root}openssl x509 -in {file} -noout -fingerprint -sha256")
}

/// Renders the steps for each system. The certificate is downloaded without verification, so its fingerprint is
/// compared.
fn per_system(host: &str) -> Markup {
    let fetch = format!(
        "curl -ko {AUTHORITY_PEM} https://{host}/owner/connect/authority/pem && openssl x509 -in {AUTHORITY_PEM} -noout -fingerprint -sha256"
    );
    html! {
        p { (texts::FETCH_FIRST) }
        pre { (fetch) }
        @for system in &SYSTEMS {
            @match system.how {
                TrustSteps::Line(line) => { p { (system.name) } pre { (line) } },
                TrustSteps::Words(words) => p { (system.name) ": " (words) },
            }
        }
    }
}

/// Returns the certificate as a file. It is public, and a phone downloads it before the owner signs in there.
pub fn authority(site: &OwnerSite, visit: &OwnerRequest, form: &str) -> PageResult {
    let authority = authority_file(site).ok_or(PageError::Absent)?;
    let (media, name, bytes) = match form {
        "pem" => (
            "application/x-pem-file",
            AUTHORITY_PEM,
            authority.pem.into_bytes(),
        ),
        "der" => (
            "application/x-x509-ca-cert",
            "gatewren-ca.crt",
            authority.facts.der().to_vec(),
        ),
        "mobileconfig" => (
            "application/x-apple-aspen-config",
            "gatewren.mobileconfig",
            profile(visit.host(), authority.facts.der()).into_bytes(),
        ),
        _ => return Err(PageError::Absent),
    };
    let mut response = Response::new(ResponseBody::whole(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    let attachment = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    headers.insert(
        CONTENT_DISPOSITION,
        attachment.map_err(|_| PageError::Unavailable)?,
    );
    add_guards(&mut response);
    Ok(response)
}

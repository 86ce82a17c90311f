//! Help: the commands to start with, and the manual as HTML, which the package installs.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use maud::{PreEscaped, html};

use super::frame::add_guards;
use super::header::Tab;
use super::page_error::PageError;
use super::site::{PageResult, SignedInRequest};
use super::texts;
use gatewren_gate::http::ResponseBody;

/// Where the manual is, from the directory above that of the program: `/usr/share/gatewren/manual` for `/usr/bin`.
const FOLDER: &str = "share/gatewren/manual";

/// The largest page, in bytes; the rest of a larger one is not shown. The longest today has 370 kB.
const LONGEST: u64 = 2 << 20;

pub const MANUAL: &str = "Manual";
const READ_MANUAL: &str = "Read the manual";

/// The pages' picture.
const PICTURE: &str = "overview.svg";

/// The section of the manual for each part of the owner's page: the first part of a path, and the link.
#[rustfmt::skip]
pub const SECTIONS: [(&str, &str); 8] = [
    ("agents",     "gatewren-guide.7.html#POLICIES"),
    ("changes",    "gatewren-guide.7.html#THE_INBOX"),
    ("inbox",      "gatewren-guide.7.html#THE_INBOX"),
    ("connect",    "gatewren-guide.7.html#CLIENTS"),
    ("logins",     "gatewren-guide.7.html#LOGINS"),
    ("sign-in",    "gatewren-guide.7.html#LOGINS"),
    ("activity",   "gatewren-audit.5.html#DESCRIPTION"),
    ("",           "gatewren.8.html#TROUBLESHOOTING"),
];

/// Returns the link to the section of the manual that explains the page at this path below `/owner`.
pub fn section_of(path: &str) -> String {
    let part = path.trim_start_matches('/').split('/').next();
    let mut sections = SECTIONS.iter();
    let found = sections.find(|(first, _)| first.is_empty() || part == Some(first));
    link(found.map_or("index.html", |(_, section)| section))
}

/// Returns the link to a section of the manual; to the help page if the manual is not installed.
pub fn link(section: &str) -> String {
    if is_installed() {
        format!("/owner/help/{section}")
    } else {
        "/owner/help".to_owned()
    }
}

/// Renders the help page.
pub fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let content = html! {
        h1 { (texts::HELP) }
        @if is_installed() { p { a class="button" href="/owner/help/index.html" { (READ_MANUAL) } } }
        p { (texts::HELP_HOW) }
        section { @for (what, command) in texts::HELP_COMMANDS { p { (what) } pre { (command) } } }
    };
    asked.page(Tab::Settings, texts::HELP, false, content)
}

/// Renders a page of the manual, or its picture.
pub fn manual(asked: &SignedInRequest<'_>, name: &str) -> PageResult {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let kind = name.rsplit_once('.').map(|(_, kind)| kind);
    let is_known = kind == Some("html") || name == PICTURE;
    if !is_known || name.starts_with('.') || !name.bytes().all(is_safe) {
        return Err(PageError::Absent);
    }
    let text = read(name).ok_or(PageError::Absent)?;
    if name == PICTURE {
        return Ok(picture(text));
    }
    let content = html! {
        p { a href="/owner/help" { (texts::HELP) } " › " a href="index.html" { (MANUAL) } }
        div class="manual" { (PreEscaped(body(&text))) }
    };
    let title = between(&text, "<title>", "</title>").unwrap_or(MANUAL);
    asked.page(Tab::Settings, title, false, content)
}

fn picture(text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(text.into_bytes()));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("image/svg+xml"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    add_guards(&mut response);
    response
}

/// The content of a page of the manual, without the link to its index, which our own line above it has.
fn body(text: &str) -> &str {
    let whole = between(text, "<body>", "</body>").unwrap_or_default();
    whole.split_once("</nav>").map_or(whole, |(_, rest)| rest)
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

fn read(name: &str) -> Option<String> {
    let file = File::open(folder()?.join(name)).ok()?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

fn is_installed() -> bool {
    folder().is_some_and(|folder| folder.join("index.html").is_file())
}

fn folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(program.parent()?.parent()?.join(FOLDER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::{SECTION_ALERT, SECTION_CONTAINER, SECTION_DISK};

    #[test]
    fn a_page_of_the_manual_is_shown_without_its_own_frame() {
        let page =
            "<title>A(1)</title></head>\n<body>\n<nav><a href=\"i\">m</a></nav><p>x</p></body>";
        assert_eq!(body(page), "<p>x</p>");
        assert_eq!(between(page, "<title>", "</title>"), Some("A(1)"));
        assert_eq!((body("<body>a</body>"), body("a")), ("a", ""));
    }

    /// The pages are sources of this repository; mandoc makes the address of a section from its title.
    #[test]
    fn every_link_leads_to_a_section_of_the_manual() {
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/man");
        let problems = [SECTION_DISK, SECTION_CONTAINER, SECTION_ALERT];
        for section in SECTIONS
            .map(|(_, section)| section)
            .into_iter()
            .chain(problems)
        {
            let (page, anchor) = section.split_once(".html#").unwrap();
            let source = std::fs::read_to_string(format!("{sources}/{page}")).unwrap();
            let title = format!(".Sh {}", anchor.replace('_', " "));
            assert!(source.lines().any(|line| line == title), "{section}");
        }
    }
}

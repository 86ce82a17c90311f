//! The header of every page: the server's name and status, the navigation, and the owner's menu.

use maud::{Markup, html};

use super::asset_address::ICONS;
use super::parts::proof;
use super::texts;
use super::theme::{Theme, theme_form};
use gatewren_gate::guard::OwnerSession;

/// The pages in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// The state of the host.
    Home,
    /// The inbox.
    Inbox,
    /// The containers.
    Containers,
    /// The agents.
    Agents,
    /// The audit.
    Activity,
    /// How clients connect, the logins, and the appearance.
    Settings,
}

/// A tab with its path, name and icon.
type TabRow = (Tab, &'static str, &'static str, &'static str);

impl Tab {
    #[rustfmt::skip]
    const ALL: [TabRow; 6] = [
        (Self::Home,       "/owner/home",       texts::HOME,       "home"),
        (Self::Inbox,      "/owner/inbox",      texts::INBOX,      "inbox"),
        (Self::Containers, "/owner/containers", texts::CONTAINERS, "containers"),
        (Self::Agents,     "/owner/agents",     texts::AGENTS,     "agents"),
        (Self::Activity,   "/owner/activity",   texts::ACTIVITY,   "activity"),
        (Self::Settings,   "/owner/settings",   texts::SETTINGS,   "settings"),
    ];

    /// The tab of this name.
    pub fn named(wanted: &str) -> Option<Self> {
        let row = Self::ALL.iter().find(|(.., icon)| *icon == wanted);
        row.map(|(tab, ..)| *tab)
    }

    /// Where the script finds the header of this tab without a content.
    pub fn header_path(self) -> String {
        let row = Self::ALL.iter().find(|(tab, ..)| *tab == self);
        format!("/owner/header?tab={}", row.map_or("", |(.., icon)| icon))
    }
}

/// What the header shows.
pub struct PageHeader<'a> {
    /// The current entry of the navigation.
    pub tab: Tab,
    /// The server's name.
    pub server: String,
    /// The number of changes that wait for a decision.
    pub waiting: usize,
    /// The number of current problems.
    pub problems: usize,
    /// Whether the server is invented.
    pub is_demo: bool,
    /// The chosen theme.
    pub theme: Theme,
    /// The owner's session.
    pub session: &'a OwnerSession,
}

impl PageHeader<'_> {
    /// Renders the header.
    pub fn markup(&self) -> Markup {
        html! {
            header {
                div class="bar" {
                    a class="brand" href="/owner/home" {
                        img src="/owner/icon.svg" alt="" width="28" height="28";
                        bdi { (self.server) }
                        (self.status())
                    }
                    (self.navigation())
                    (self.menu())
                }
                @if self.is_demo { p class="demo" { strong { (texts::DEMO) } " " (texts::DEMO_MEANS) } }
            }
        }
    }

    /// Renders the status: a shape and a colour, with words for screen readers.
    fn status(&self) -> Markup {
        let (class, words) = match (self.problems, self.waiting) {
            (0, 0) => ("dot", texts::ALL_WELL.to_owned()),
            (0, waiting) => ("dot warn", waiting_words(waiting)),
            (1, _) => ("dot bad", texts::ONE_PROBLEM.to_owned()),
            (problems, _) => ("dot bad", format!("{problems} {}", texts::SOME_PROBLEMS)),
        };
        html! { span class=(class) title=(words) {} span class="unseen" { " " (words) } }
    }

    fn navigation(&self) -> Markup {
        html! {
            nav aria-label=(texts::NAVIGATION) {
                @for (tab, path, name, image) in Tab::ALL {
                    // A narrow screen has this entry in the menu.
                    @let class = (tab == Tab::Settings).then_some("wide");
                    a href=(path) class=[class] aria-current=[(tab == self.tab).then_some("page")] {
                        (icon(image))
                        span { (name) @if tab == Tab::Inbox && self.waiting > 0 { " (" (self.waiting) ")" } }
                    }
                }
            }
        }
    }

    fn menu(&self) -> Markup {
        let links = [
            ("/owner/settings", texts::SETTINGS),
            ("/owner/logins", texts::LOGINS),
            ("/owner/help", texts::HELP),
        ];
        html! {
            details id="menu" {
                summary { (icon("owner")) span class="unseen" { (texts::MENU) } }
                div class="card" {
                    @for (path, name) in links { a href=(path) { (name) } }
                    (theme_form(self.theme, self.session))
                    form method="post" action="/owner/sign-out" {
                        (proof(self.session))
                        button class="plain" { (texts::SIGN_OUT) }
                    }
                }
            }
        }
    }
}

/// How many changes wait for the owner, in words.
pub fn waiting_words(waiting: usize) -> String {
    match waiting {
        1 => texts::ONE_WAITS.to_owned(),
        _ => format!("{waiting} {}", texts::SOME_WAIT),
    }
}

/// Renders an icon of the file of icons; a word beside it names it, so screen readers skip it.
fn icon(name: &str) -> Markup {
    html! { svg class="icon" viewBox="0 0 24 24" aria-hidden="true" { use href=(format!("{ICONS}#{name}")) {} } }
}

//! The theme of the pages, light, dark or that of the system, in a cookie: it works without scripts and before sign-in.

use hyper::header::HeaderMap;
use maud::{Markup, html};

use super::parts::proof;
use super::texts;
use gatewren_gate::guard::{OwnerRequest, OwnerSession, theme_cookie};

/// The colours of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Those of the visitor's system.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::System, "system", texts::THEME_SYSTEM),
        (Self::Light, "light", texts::THEME_LIGHT),
        (Self::Dark, "dark", texts::THEME_DARK),
    ];

    /// The theme that the visitor chose.
    pub fn of(visit: &OwnerRequest) -> Self {
        visit.theme().and_then(Self::named).unwrap_or_default()
    }

    /// The theme of this name.
    pub fn named(wanted: &str) -> Option<Self> {
        let row = Self::ALL.iter().find(|(_, word, _)| *word == wanted);
        row.map(|(theme, ..)| *theme)
    }

    /// The value of the attribute for the style sheet; `None` for that of the system.
    pub fn attribute(self) -> Option<&'static str> {
        match self {
            Self::System => None,
            Self::Light => Some("light"),
            Self::Dark => Some("dark"),
        }
    }
}

/// The value of the attribute for the theme that a visitor chose, for pages that are not among the owner's.
pub fn chosen_theme(headers: &HeaderMap) -> Option<&'static str> {
    theme_cookie(headers)
        .and_then(Theme::named)
        .and_then(Theme::attribute)
}

/// Renders a button for each theme.
pub fn theme_form(current: Theme, session: &OwnerSession) -> Markup {
    html! {
        form method="post" action="/owner/theme" role="group" aria-label=(texts::THEME) class="themes" {
            (proof(session))
            @for (theme, word, name) in Theme::ALL {
                button class="plain" name="theme" value=(word) aria-pressed=(theme == current) { (name) }
            }
        }
    }
}

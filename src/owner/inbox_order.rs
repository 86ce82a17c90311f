//! The order of the inbox: which changes are on which page, shown in full, and approvable together.

use std::collections::BTreeMap;

use super::page_error::PageError;
use super::site::OwnerSite;
use gatewren_base::config::Risk;
use gatewren_gate::owner_actions::{ChangeBatch, shown_change};
use gatewren_store::vault::{Change, ChangeStatus};
use gatewren_tools::tool_texts::loses_data;

/// The number of open changes on one page.
const ON_A_PAGE: usize = 10;

/// The maximum size of a change that is shown in full in a list, in characters and in lines. A longer one is
/// approved on its own page only.
const MAX_CHARACTERS: usize = 4_000;
const MAX_LINES: usize = 60;

/// One page of the inbox.
#[derive(Debug)]
pub struct InboxPage {
    /// The page's number, from 1.
    pub number: usize,
    /// The number of pages.
    pub count: usize,
    /// The open changes on this page: pending ones first, then by risk from the highest, then by length from the
    /// longest.
    pub shown: Vec<Change>,
    /// All open changes, in the same order.
    open: Vec<Change>,
}

/// The length of a change as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeLength {
    /// Characters of tool, arguments and reason.
    pub characters: usize,
    /// Lines of the same.
    pub lines: usize,
}

impl InboxPage {
    /// Returns the page with this number, or the last one if there are fewer.
    pub fn of(site: &OwnerSite, open: Vec<Change>, number: usize) -> Result<Self, PageError> {
        let tools = site.tools()?;
        let risks = tools.into_iter().map(|tool| (tool.name, tool.risk));
        Ok(Self::among(open, &risks.collect(), number))
    }

    fn among(mut open: Vec<Change>, risks: &BTreeMap<String, Risk>, number: usize) -> Self {
        open.sort_by_cached_key(|change| {
            let decided = change.status != ChangeStatus::Pending;
            let rank = rank(risks.get(&change.tool).copied());
            // Rendering every change only for sorting would be slow.
            let shortness = usize::MAX - change.arguments.len();
            (
                decided,
                rank,
                shortness,
                change.created_ms,
                change.id.clone(),
            )
        });
        let count = open.len().div_ceil(ON_A_PAGE).max(1);
        let number = number.clamp(1, count);
        let from = (number - 1) * ON_A_PAGE;
        let shown = open.iter().skip(from).take(ON_A_PAGE).cloned().collect();
        Self {
            number,
            count,
            shown,
            open,
        }
    }

    /// The agents with waiting changes, in the order of the pages.
    pub fn waiting_agents(&self) -> Vec<String> {
        let mut agents: Vec<String> = Vec::new();
        for change in self.waiting() {
            if !agents.contains(&change.agent) {
                agents.push(change.agent.clone());
            }
        }
        agents
    }

    /// All waiting changes of an agent, on any page.
    pub fn waiting_of(&self, agent: &str) -> Vec<Change> {
        let of_agent = self.waiting().filter(|change| change.agent == agent);
        of_agent.cloned().collect()
    }

    /// The waiting changes of an agent that this page shows in full, which can be approved together. One that loses
    /// data for good is approved by itself.
    pub fn batch(&self, agent: &str) -> ChangeBatch {
        ChangeBatch::of(self.waiting_of(agent), |change| {
            let is_available = self.shown.iter().any(|shown| shown.id == change.id);
            is_available && ChangeLength::of(change).fits() && !loses_data(&change.tool)
        })
    }

    fn waiting(&self) -> impl Iterator<Item = &Change> {
        let pending = |change: &&Change| change.status == ChangeStatus::Pending;
        self.open.iter().filter(pending)
    }
}

impl ChangeLength {
    /// Computes the length of a change.
    pub fn of(change: &Change) -> Self {
        let text = shown_change(change);
        Self {
            characters: text.chars().count(),
            lines: text.lines().count(),
        }
    }

    /// Whether it is shown in full in a list.
    pub fn fits(self) -> bool {
        self.characters <= MAX_CHARACTERS && self.lines <= MAX_LINES
    }
}

/// The rank of a risk, the riskiest first; an unknown tool comes first, because it could do anything.
fn rank(risk: Option<Risk>) -> u8 {
    match risk {
        None => 0,
        Some(Risk::Persist) => 1,
        Some(Risk::Execute) => 2,
        Some(Risk::Disrupt) => 3,
        Some(Risk::Reveal) => 4,
        Some(Risk::Write) => 5,
        Some(Risk::Scan) => 6,
        Some(Risk::Read) => 7,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(id: usize, tool: &str, command: &str) -> Change {
        let arguments = json!({ "command": command }).to_string();
        Change {
            agent: "a".into(),
            created_ms: id as u64,
            ..Change::waiting(&format!("chg_{id:016x}"), tool, arguments)
        }
    }

    fn page(open: &[Change], number: usize) -> InboxPage {
        let risks = [
            ("stop", Risk::Disrupt),
            ("shell", Risk::Execute),
            ("put", Risk::Write),
        ];
        let risks = risks.map(|(name, risk)| (name.to_owned(), risk)).into();
        InboxPage::among(open.to_vec(), &risks, number)
    }

    #[test]
    fn the_riskiest_and_longest_changes_come_first() {
        let mut approved = change(9, "shell", "approved");
        approved.status = ChangeStatus::Approved;
        let open = [
            approved,
            change(1, "put", "a"),
            change(2, "stop", "a"),
            change(3, "shell", "a"),
            change(4, "shell", "a longer one"),
            change(5, "unknown", "a"),
        ];
        let order: Vec<u64> = page(&open, 1).shown.iter().map(|c| c.created_ms).collect();
        assert_eq!(order, [5, 4, 3, 2, 1, 9]);
    }

    #[test]
    fn a_batch_has_what_one_page_shows_in_full_and_nothing_else() {
        let mut open: Vec<Change> = (0..12).map(|n| change(n, "shell", "uptime")).collect();
        open.push(change(
            12,
            "shell",
            &format!("echo {}; id", "x".repeat(MAX_CHARACTERS)),
        ));
        open.push(change(
            13,
            "shell",
            &format!("echo{}id", ";\n".repeat(MAX_LINES)),
        ));
        let (first, second) = (page(&open, 1), page(&open, 2));
        assert_eq!(
            (first.count, first.shown.len(), second.shown.len()),
            (2, 10, 4)
        );
        let (one, two) = (first.batch("a"), second.batch("a"));
        assert_eq!((one.changes.len(), two.changes.len()), (8, 4));
        let ids = |batch: &ChangeBatch| {
            batch
                .changes
                .iter()
                .map(|c| c.created_ms)
                .collect::<Vec<_>>()
        };
        assert!(!ids(&one).contains(&12) && !ids(&one).contains(&13));
        assert_ne!(one.digest, two.digest);
        assert!(first.batch("b").changes.is_empty());
        // The same page, with one more change waiting on another page.
        open.push(change(14, "put", "late"));
        assert!(page(&open, 1).batch("a").check(&one.digest).is_err());
        assert_eq!(page(&open, 9).number, 2, "the last one");
    }
}

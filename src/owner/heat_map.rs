//! The calls of a week as a map of 7 days by 24 hours: when an agent works, and when it was refused.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::agent_texts as texts;
use super::home_texts;
use super::parts::table;
use gatewren_base::sys::{LocalZone, now_ms};
use gatewren_store::vault::{CallCounts, HourOfCalls};

/// The days of a map, the last one today.
const DAYS: usize = 7;

const HOURS: usize = 24;

/// The width and height of a cell, with its margin.
const CELL: usize = 10;

/// The room for the names of the days.
const NAMES: usize = 26;

/// The shades of a cell with calls.
const SHADES: u64 = 4;

/// The begin of the week that ends now, in milliseconds since 1970.
pub fn week_begin_ms() -> u64 {
    now_ms().saturating_sub((DAYS as u64) * 86_400_000)
}

/// The calls of a week.
#[derive(Debug, Default)]
pub struct HeatMap {
    /// The days, the oldest first, each with its hours.
    cells: [[CallCounts; HOURS]; DAYS],
    /// The local day of today, in days since 1970.
    today: i64,
}

impl HeatMap {
    /// Counts the calls of some hours, in the local time of the server.
    pub fn of<'a>(hours: impl Iterator<Item = &'a HourOfCalls>, zone: &LocalZone) -> Self {
        Self::until(now_ms(), hours, zone)
    }

    fn until<'a>(now: u64, hours: impl Iterator<Item = &'a HourOfCalls>, zone: &LocalZone) -> Self {
        let today = zone.day_and_hour(now).map_or(0, |(day, _)| day);
        let mut cells = <[[CallCounts; HOURS]; DAYS]>::default();
        for one in hours {
            let Some((day, hour)) = zone.day_and_hour(one.begin_ms) else {
                continue;
            };
            let row = usize::try_from(today - day)
                .ok()
                .and_then(|ago| (DAYS - 1).checked_sub(ago));
            let cell = row.and_then(|row| cells.get_mut(row)?.get_mut(hour));
            if let Some(cell) = cell {
                cell.calls += one.counts.calls;
                cell.refused += one.counts.refused;
            }
        }
        Self { cells, today }
    }

    /// All calls of the week.
    pub fn total(&self) -> CallCounts {
        let all = self.cells.iter().flatten();
        all.fold(CallCounts::default(), |sum, cell| CallCounts {
            calls: sum.calls + cell.calls,
            refused: sum.refused + cell.refused,
        })
    }

    /// Renders the map alone, for a card.
    pub fn render(&self) -> Markup {
        let (width, height) = (NAMES + HOURS * CELL, DAYS * CELL);
        let most = self.cells.iter().flatten().map(|cell| cell.calls).max();
        let most = most.unwrap_or(0).max(1);
        let shade = |cell: &CallCounts| match cell.calls {
            0 => 0,
            calls => 1 + calls.saturating_sub(1) * SHADES / most,
        };
        html! {
            svg class="heat" viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(self.words()) {
                @for row in 0..DAYS {
                    text x="0" y=(row * CELL + CELL - 2) { (self.day_name(row)) }
                }
                @for wanted in 0..=SHADES {
                    @let path = self.squares(CELL - 1, |cell| shade(cell) == wanted);
                    @if !path.is_empty() { path class=(format!("s{wanted}")) d=(path) {} }
                }
                @let refused = self.squares(4, |cell| cell.refused > 0);
                @if !refused.is_empty() { path class="refused" d=(refused) {} }
            }
        }
    }

    /// Renders the map with its hours, and its values as a table.
    pub fn render_with_table(&self, id: &str) -> Markup {
        let heads: Vec<String> = (0..HOURS).map(|hour| format!("{hour} h")).collect();
        let heads: Vec<&str> = [texts::DAY]
            .into_iter()
            .chain(heads.iter().map(String::as_str))
            .collect();
        let rows = html! {
            @for (row, hours) in self.cells.iter().enumerate() { tr {
                th scope="row" { (self.day_name(row)) }
                @for cell in hours { td { (cell_words(cell)) } }
            } }
        };
        html! {
            (self.render())
            p class="axis heat-axis" { span { "0 h" } span { "12 h" } span { "23 h" } }
            p class="soft" { (self.words()) " " (texts::LOCAL_TIME) }
            details id=(id) { summary { (home_texts::VALUES) } (table(texts::CALLS_OF_WEEK, &heads, &rows)) }
        }
    }

    fn words(&self) -> String {
        let CallCounts { calls, refused } = self.total();
        format!(
            "{calls} {}, {refused} {}.",
            texts::CALLS_IN_WEEK,
            texts::REFUSED
        )
    }

    /// The name of the day of a row. The first day of 1970 was a Thursday.
    fn day_name(&self, row: usize) -> &'static str {
        let ago = i64::try_from(DAYS - 1 - row).unwrap_or(0);
        let at = usize::try_from((self.today - ago + 3).rem_euclid(7)).unwrap_or(0);
        texts::WEEK.get(at).copied().unwrap_or_default()
    }

    /// The path of a square in the middle of each cell that fits.
    fn squares(&self, side: usize, fits: impl Fn(&CallCounts) -> bool) -> String {
        let margin = (CELL - side) / 2;
        let mut path = String::new();
        for (row, hours) in self.cells.iter().enumerate() {
            for (hour, cell) in hours.iter().enumerate() {
                if fits(cell) {
                    let (x, y) = (NAMES + hour * CELL + margin, row * CELL + margin);
                    // Cannot fail: writing to a String.
                    let _ = write!(path, "M{x} {y}h{side}v{side}h-{side}z");
                }
            }
        }
        path
    }
}

fn cell_words(cell: &CallCounts) -> String {
    match (cell.calls, cell.refused) {
        (0, _) => "·".to_owned(),
        (calls, 0) => calls.to_string(),
        (calls, refused) => format!("{calls}, {refused} {}", texts::REFUSED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn hour(begin_ms: u64, calls: u64, refused: u64) -> HourOfCalls {
        HourOfCalls {
            agent: "agent_1".to_owned(),
            begin_ms,
            counts: CallCounts { calls, refused },
        }
    }

    #[test]
    fn a_call_is_in_the_cell_of_its_day_and_hour_and_older_ones_are_in_none() {
        // A Monday at 13:30.
        let now = 20_003 * 24 * HOUR_MS + 27 * HOUR_MS / 2;
        let midnight = 20_003 * 24 * HOUR_MS;
        let hours = [
            hour(midnight + 13 * HOUR_MS, 4, 1),
            hour(midnight - HOUR_MS, 2, 0),
            hour(midnight - 6 * 24 * HOUR_MS, 1, 0),
            hour(midnight - 6 * 24 * HOUR_MS - HOUR_MS, 9, 9),
            hour(midnight + 13 * HOUR_MS, 4, 0),
        ];
        let map = HeatMap::until(now, hours.iter(), &LocalZone::utc());
        let at = |row: usize, hour: usize| map.cells[row][hour];
        assert_eq!((at(6, 13).calls, at(6, 13).refused), (8, 1));
        assert_eq!((at(5, 23).calls, at(0, 0).calls), (2, 1));
        assert_eq!((map.total().calls, map.total().refused), (11, 1));
        assert_eq!((map.day_name(6), map.day_name(5)), ("Mon", "Sun"));
        let drawn = map.render().into_string();
        let cells = |class: &str| {
            let path = drawn.split(&format!("class=\"{class}\" d=\"")).nth(1);
            let path = path.and_then(|rest| rest.split('"').next());
            path.unwrap_or_default().matches('M').count()
        };
        assert_eq!(cells("s0"), 7 * 24 - 3, "{drawn}");
        assert_eq!((cells("s4"), cells("refused")), (1, 1), "{drawn}");
        let table = map.render_with_table("week").into_string();
        assert!(table.contains("<td>8, 1 refused</td>"), "{table}");
    }
}

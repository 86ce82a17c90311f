//! Charts of values over time: an area on a baseline, the lowest and the highest value, a time axis, and a table.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::home_texts as texts;
use super::parts::{table, time};

/// The size of a chart in its own units; it is stretched to the available width.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 60.0;

/// With fewer points a chart says that it is not complete yet.
const MIN_POINTS: usize = 10;

/// The most rows of a table of values.
const ROWS: u64 = 12;

/// A value at a time.
#[derive(Debug, Clone, Copy)]
pub struct ChartPoint {
    /// The time in seconds since 1970.
    pub at_s: u64,
    /// The value.
    pub value: f64,
}

/// The time that a chart shows.
#[derive(Debug, Clone, Copy)]
pub struct ChartPeriod {
    /// Its begin in seconds since 1970.
    pub since_s: u64,
    /// Its end.
    pub until_s: u64,
    /// The distance of two points. Those with a much longer one are not connected.
    pub step_s: u64,
    /// Its begin in words.
    pub begin: &'static str,
}

/// A chart.
pub struct TimeChart {
    /// What it shows.
    pub title: &'static str,
    /// The current value.
    pub caption: String,
    /// The values, oldest first.
    pub points: Vec<ChartPoint>,
    /// The value at the top; `None` for the largest one.
    pub most: Option<f64>,
    /// How a value is written.
    pub format: fn(f64) -> String,
}

impl TimeChart {
    /// Renders the chart, or how many values it has if these are few.
    pub fn render(&self, period: ChartPeriod) -> Markup {
        if self.points.len() < MIN_POINTS {
            return html! {
                div class="chart" {
                    strong { (self.title) } " " span { (self.caption) }
                    p class="soft" { (texts::COLLECTING) " " (self.points.len()) " " (texts::OF_MINUTES) }
                }
            };
        }
        let values = || self.points.iter().map(|point| point.value);
        let highest = values().fold(0.0, f64::max);
        let lowest = values().fold(highest, f64::min);
        let (low, high) = ((self.format)(lowest), (self.format)(highest));
        let most = self.most.unwrap_or(highest).max(f64::MIN_POSITIVE);
        let (area, line) = self.paths(period, most);
        let label = format!(
            "{}: {}; {} {low}, {} {high}",
            self.title,
            self.caption,
            texts::LOWEST,
            texts::HIGHEST
        );
        html! {
            div class="chart" {
                strong { (self.title) } " " span { (self.caption) }
                p class="axis" aria-hidden="true" { span { (low) " " (texts::TO) " " (high) } }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
                    path class="area" d=(area) {}
                    path class="line" d=(line) {}
                }
                p class="axis" aria-hidden="true" { span { (period.begin) } span { (texts::NOW) } }
            }
        }
    }

    /// The outlines of the areas and of the lines above them; a gap ends an area.
    fn paths(&self, period: ChartPeriod, most: f64) -> (String, String) {
        let length = float(period.until_s.saturating_sub(period.since_s)).max(1.0);
        let (mut area, mut line) = (String::new(), String::new());
        let mut before: Option<u64> = None;
        for point in &self.points {
            let x = (float(point.at_s.saturating_sub(period.since_s)) * WIDTH / length).min(WIDTH);
            let y = HEIGHT - 1.0 - (point.value / most).clamp(0.0, 1.0) * (HEIGHT - 2.0);
            let is_near = |at_s| point.at_s.saturating_sub(at_s) <= 2 * period.step_s;
            // Writing to a String cannot fail.
            match before {
                Some(at_s) if is_near(at_s) => {
                    let _ = write!(line, "L{x:.0} {y:.0}");
                }
                _ => {
                    if before.is_some() {
                        let _ = write!(area, "V{HEIGHT}Z");
                    }
                    let _ = write!(area, "M{x:.0} {HEIGHT}");
                    let _ = write!(line, "M{x:.0} {y:.0}");
                }
            }
            let _ = write!(area, "L{x:.0} {y:.0}");
            before = Some(point.at_s);
        }
        if before.is_some() {
            let _ = write!(area, "V{HEIGHT}Z");
        }
        (area, line)
    }

    /// The mean of the values of a time; `None` without any.
    fn mean(&self, since_s: u64, until_s: u64) -> Option<f64> {
        let within = |point: &&ChartPoint| (since_s..until_s).contains(&point.at_s);
        let values: Vec<f64> = self
            .points
            .iter()
            .filter(within)
            .map(|point| point.value)
            .collect();
        let count = u32::try_from(values.len())
            .ok()
            .filter(|count| *count > 0)?;
        Some(values.iter().sum::<f64>() / f64::from(count))
    }
}

/// Renders the values of charts with the same period as a table of means; nothing if they have too few.
pub fn values_table(id: &str, charts: &[TimeChart], period: ChartPeriod) -> Markup {
    let has_values = charts.iter().any(|chart| chart.points.len() >= MIN_POINTS);
    let part_s = (period.until_s.saturating_sub(period.since_s) / ROWS).max(1);
    let mut heads = vec![texts::FROM];
    heads.extend(charts.iter().map(|chart| chart.title));
    let rows = html! {
        @for part in 0..ROWS {
            @let since_s = period.since_s + part * part_s;
            @let means: Vec<_> = charts.iter().map(|chart| chart.mean(since_s, since_s + part_s).map(chart.format)).collect();
            @if means.iter().any(Option::is_some) {
                tr { td { (time(since_s * 1000)) } @for mean in &means { td { (mean.as_deref().unwrap_or("-")) } } }
            }
        }
    };
    html! {
        @if has_values { details id=(id) { summary { (texts::VALUES) } (table(texts::VALUES, &heads, &rows)) } }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a chart with a width of 300 units shows no more"
)]
fn float(number: u64) -> f64 {
    number as f64
}

/// Formats a share for people.
pub fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

/// Formats bytes per second for people.
pub fn bytes_per_second(value: f64) -> String {
    format!("{}/s", bytes(value))
}

/// Formats a number of bytes for people.
pub fn bytes(count: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut left = count;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while left >= 1024.0 {
        let Some(next) = units.next() else { break };
        unit = Some(next);
        left /= 1024.0;
    }
    let unit = unit.copied().unwrap_or_default();
    if left < 10.0 && unit != "B" {
        format!("{left:.1} {unit}")
    } else {
        format!("{left:.0} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: ChartPeriod = ChartPeriod {
        since_s: 0,
        until_s: 3600,
        step_s: 60,
        begin: texts::LAST_HOUR,
    };

    fn chart(values: &[(u64, f64)]) -> TimeChart {
        let point = |(minute, value): &(u64, f64)| ChartPoint {
            at_s: minute * 60,
            value: *value,
        };
        TimeChart {
            title: texts::CPU,
            caption: "7 %".to_owned(),
            points: values.iter().map(point).collect(),
            most: Some(100.0),
            format: percent,
        }
    }

    #[test]
    fn a_gap_ends_the_area_and_no_line_leaves_the_chart() {
        let (area, line) =
            chart(&[(0, 0.0), (1, 50.0), (30, 100.0), (60, 500.0)]).paths(HOUR, 100.0);
        assert_eq!(
            area,
            "M0 60L0 59L5 30V60ZM150 60L150 1V60ZM300 60L300 1V60Z"
        );
        assert!(line.starts_with("M0 59L5 30"), "{line}");
    }

    #[test]
    fn a_chart_with_few_points_says_so_and_others_have_words_and_a_table() {
        let few = chart(&[(0, 1.0), (1, 2.0), (2, 3.0)]);
        let page = few.render(HOUR).into_string();
        assert!(
            page.contains("Collecting: 3 of 60 minutes") && !page.contains("<svg"),
            "{page}"
        );
        assert_eq!(values_table("v", &[few], HOUR).into_string(), "");
        let many: Vec<(u64, f64)> = (0_u32..60)
            .map(|minute| (minute.into(), minute.into()))
            .collect();
        let many = chart(&many);
        let page = many.render(HOUR).into_string();
        assert!(
            page.contains("aria-label=\"CPU: 7 %; lowest 0 %, highest 59 %\""),
            "{page}"
        );
        let rows = values_table("v", &[many], HOUR).into_string();
        assert_eq!(rows.matches("<tr>").count(), 13, "{rows}");
        assert!(rows.contains(">57 %</td>"), "{rows}");
    }

    #[test]
    fn bytes_are_read_at_a_glance() {
        let formatted = [0.0, 1023.0, 1024.0, 1.5e6, 3.2e10].map(bytes);
        assert_eq!(formatted, ["0 B", "1023 B", "1.0 KiB", "1.4 MiB", "30 GiB"]);
    }
}

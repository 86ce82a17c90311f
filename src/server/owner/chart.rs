//! Small charts: a line for the last hour.

use std::fmt::Write as _;

use maud::{Markup, html};

/// The width of a chart in its own units; it is stretched to the available width.
const WIDTH: f64 = 120.0;
/// The height of a chart in its own units.
const HEIGHT: f64 = 40.0;

/// The number of points of a full chart; fewer are drawn at its right end.
const POINTS: usize = 60;

/// Renders a chart of values from 0 to `most`, or to the largest value if `None`, with a text alternative.
pub fn chart(title: &str, values: &[f64], most: Option<f64>, caption: &str) -> Markup {
    let largest = values.iter().copied().fold(0.0, f64::max);
    let most = most.unwrap_or(largest).max(f64::MIN_POSITIVE);
    html! {
        div class="chart" {
            strong { (title) } " " span { (caption) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(format!("{title}: {caption}")) {
                polyline points=(points(values, most)) {}
            }
        }
    }
}

fn points(values: &[f64], most: f64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "there are 60")]
    let place = |index: usize| index as f64 * WIDTH / (POINTS - 1) as f64;
    let shown = values
        .get(values.len().saturating_sub(POINTS)..)
        .unwrap_or_default();
    let first = POINTS - shown.len();
    let mut points = String::new();
    for (index, value) in shown.iter().enumerate() {
        let height = HEIGHT - 1.0 - (value / most).clamp(0.0, 1.0) * (HEIGHT - 2.0);
        // Writing to a `String` cannot fail.
        let _ = write!(points, "{:.1},{height:.1} ", place(first + index));
    }
    points
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

    #[test]
    fn the_newest_stands_at_the_right_end() {
        assert_eq!(
            points(&[0.0, 50.0, 100.0], 100.0),
            "115.9,39.0 118.0,20.0 120.0,1.0 "
        );
        assert_eq!(points(&[], 100.0), "");
        assert_eq!(
            points(&[500.0], 100.0),
            "120.0,1.0 ",
            "no line leaves the chart"
        );
        assert_eq!(points(&vec![1.0; 99], 2.0).split(' ').count(), POINTS + 1);
    }

    #[test]
    fn bytes_are_read_at_a_glance() {
        let formatted = [0.0, 1023.0, 1024.0, 1.5e6, 3.2e10].map(bytes);
        assert_eq!(formatted, ["0 B", "1023 B", "1.0 KiB", "1.4 MiB", "30 GiB"]);
    }
}

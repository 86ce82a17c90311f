//! Small drawings: lines over two logarithmic axes, as SVG.

use std::fmt::Write as _;

use crate::figure::Curve;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 32.0;
const BOTTOM: f64 = 44.0;

/// gatewren's colour is the first. Everyone can distinguish grey and blue, on white and on black.
const COLOURS: [&str; 4] = ["#1f77b4", "#888888", "#d95f02", "#1b9e77"];

/// One axis, in powers of ten.
struct Axis {
    low: i32,
    high: i32,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let logs = values.filter(|value| *value > 0.0).map(f64::log10);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for log in logs {
            (low, high) = (low.min(log), high.max(log));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let low = whole(low.floor());
        let high = whole(high.ceil()).max(low + 1);
        Self {
            low,
            high,
            from,
            to,
        }
    }

    /// Returns the position of a value; zero and negative values are at the beginning.
    fn at(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let share = if value > 0.0 {
            ((value.log10() - low) / (high - low)).clamp(0.0, 1.0)
        } else {
            0.0
        };
        self.from + share * (self.to - self.from)
    }

    fn powers(&self) -> impl Iterator<Item = (f64, String)> {
        (self.low..=self.high).map(|power| (self.at(10_f64.powi(power)), power_words(power)))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "powers of ten of measured values are small"
)]
fn whole(value: f64) -> i32 {
    value as i32
}

fn power_words(power: i32) -> String {
    match power {
        0..=2 => format!("{:.0}", 10_f64.powi(power)),
        3..=5 => format!("{:.0}k", 10_f64.powi(power - 3)),
        6.. => format!("{:.0}M", 10_f64.powi(power - 6)),
        _ => format!("{}", 10_f64.powi(power)),
    }
}

/// Draws a curve.
pub fn draw(curve: &Curve) -> String {
    let points = || curve.lines.iter().flat_map(|line| &line.points);
    let across = Axis::new(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let upwards = Axis::new(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
    );
    text(&mut svg, (LEFT, 18.0), "start", &curve.title);
    text(
        &mut svg,
        (f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 8.0),
        "middle",
        &curve.across,
    );
    text(&mut svg, (WIDTH - RIGHT, 18.0), "end", &curve.upwards);
    for (x, words) in across.powers() {
        grid(&mut svg, (x, TOP), (x, HEIGHT - BOTTOM));
        text(&mut svg, (x, HEIGHT - BOTTOM + 14.0), "middle", &words);
    }
    for (y, words) in upwards.powers() {
        grid(&mut svg, (LEFT, y), (WIDTH - RIGHT, y));
        text(&mut svg, (LEFT - 6.0, y + 4.0), "end", &words);
    }
    let mut row = TOP + 14.0;
    for (line, colour) in curve.lines.iter().zip(COLOURS.iter().cycle()) {
        let places = line
            .points
            .iter()
            .map(|(x, y)| (across.at(*x), upwards.at(*y)));
        path(&mut svg, places, colour);
        if curve.lines.len() > 1 {
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"3\" fill=\"{colour}\"/>",
                LEFT + 8.0,
                row - 5.0
            );
            text(&mut svg, (LEFT + 22.0, row), "start", &line.name);
            row += 14.0;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn path(svg: &mut String, places: impl Iterator<Item = (f64, f64)>, colour: &str) {
    let places: Vec<(f64, f64)> = places.collect();
    let words: Vec<String> = places
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        words.join(" ")
    );
    for (x, y) in places {
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
        );
    }
}

fn grid(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#dddddd\"/>"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#333333\">{words}</text>"
    );
}

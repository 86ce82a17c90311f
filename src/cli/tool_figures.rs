//! The measured figures of the tools: the size of a typical answer, and the time of a call at the 95th percentile.

/// A line for each tool, in the order of names: name, bytes, milliseconds. `tests/bench/tools/run --keep` writes it.
const MEASURED: &str = include_str!("tool_figures.tsv");

/// The first line begins with it, and names the machine of the measurement.
const HEAD: &str = "# ";

/// The figure of a tool that was not measured.
pub const NOT_MEASURED: &str = "-";

/// The figures of one tool as they are in the file, each a number or [`NOT_MEASURED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolFigures {
    /// The median size of the result as it is sent, in bytes.
    pub answer_bytes: &'static str,
    /// The time of a call at the 95th percentile, in milliseconds.
    pub p95_ms: &'static str,
}

/// The machine, the version and the date of the figures, as a sentence.
pub fn conditions() -> &'static str {
    let first = MEASURED.lines().next().unwrap_or_default();
    first.strip_prefix(HEAD).unwrap_or_default()
}

/// The figures of a tool.
pub fn figures_of(tool: &str) -> ToolFigures {
    let found = rows().find(|(name, _)| *name == tool);
    found.map_or(
        ToolFigures {
            answer_bytes: NOT_MEASURED,
            p95_ms: NOT_MEASURED,
        },
        |(_, figures)| figures,
    )
}

/// The rows of the file, each with its tool's name.
fn rows() -> impl Iterator<Item = (&'static str, ToolFigures)> {
    let lines = MEASURED.lines().filter(|line| !line.starts_with(HEAD));
    lines.filter_map(|line| {
        let mut columns = line.split('\t');
        let name = columns.next()?;
        let figures = ToolFigures {
            answer_bytes: columns.next()?,
            p95_ms: columns.next()?,
        };
        columns.next().is_none().then_some((name, figures))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_server::app::tables;

    #[test]
    fn the_file_has_each_tool_once_and_nothing_else() {
        let catalog = tables().unwrap();
        let expected: Vec<&str> = catalog.tools().map(|tool| tool.name()).collect();
        let measured: Vec<&str> = rows().map(|(name, _)| name).collect();
        assert_eq!(
            measured, expected,
            "src/cli/tool_figures.tsv needs one line for each tool, by name; a new tool is added to \
             tests/bench/tools/calls.py and has \"-\" twice until tests/bench/tools/run --keep measures it"
        );
        assert_eq!(
            MEASURED.lines().count(),
            expected.len() + 1,
            "lines that are no row"
        );
    }

    #[test]
    fn each_figure_is_a_number_and_the_head_says_where_it_was_measured() {
        for (name, figures) in rows() {
            let pair = [figures.answer_bytes, figures.p95_ms];
            if pair == [NOT_MEASURED; 2] {
                continue;
            }
            let bytes: u64 = figures.answer_bytes.parse().unwrap();
            let ms: f64 = figures.p95_ms.parse().unwrap();
            assert!(bytes > 20 && ms > 0.0, "{name}: {pair:?}");
        }
        let head = conditions();
        for words in ["Measured on 20", "gatewren", "50 containers", "load"] {
            assert!(head.contains(words), "{words:?} in {head:?}");
        }
        assert!(head.ends_with('.'));
    }

    #[test]
    fn a_tool_that_is_not_in_the_file_is_not_measured() {
        assert_eq!(figures_of("no_such_tool").p95_ms, NOT_MEASURED);
        assert_ne!(figures_of("whoami").p95_ms, NOT_MEASURED);
    }
}

//! The text format of Prometheus: families with their help, samples with their labels.

use std::fmt::{Display, Write as _};

/// A page of metrics, while it is written.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a family of samples: its name, its kind such as `counter`, and its help text.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample to the last family.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let opening = if at == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{opening}{label}=\"");
            self.push_escaped(text);
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// Adds a family of one sample without labels.
    pub fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// The page.
    pub fn into_text(self) -> String {
        self.0
    }

    /// Escapes a label's text: the owner chooses the names of agents, which may contain anything.
    fn push_escaped(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                letter => self.0.push(letter),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_families_told_once() {
        let mut page = Exposition::default();
        page.family("x_total", "counter", "Things.");
        page.sample("x_total", &[("a", "q\"\\\n"), ("b", "ä")], 1);
        page.single("y", "gauge", "Another.", 2.5);
        assert_eq!(
            page.into_text(),
            "# HELP x_total Things.\n# TYPE x_total counter\nx_total{a=\"q\\\"\\\\\\n\",b=\"ä\"} 1\n\
             # HELP y Another.\n# TYPE y gauge\ny 2.5\n"
        );
    }
}

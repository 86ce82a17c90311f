//! The man pages, checked by tests.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::machine::skip;

/// Returns the output of `gatewren` with these arguments.
pub fn gatewren(words: &[&str]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let output = program.args(words).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns whether the sample settings have `section] key`, or the section for `section]` without a key.
fn is_setting(settings: &str, text: &str) -> bool {
    let Some((section, key)) = text.split_once("] ") else {
        return settings.contains(&format!("\n[{text}\n"));
    };
    let Some((_, rest)) = settings.split_once(&format!("\n[{section}]\n")) else {
        return false;
    };
    let keys = rest.split("\n[").next().unwrap();
    keys.contains(&format!("\n#{key} = "))
}

/// A page in `packaging/man`, with the tables that the program prints.
pub struct Manual {
    /// Its roff source.
    pub source: String,
}

impl Manual {
    pub fn named(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/man");
        let path = path.join(name);
        let source = gatewren(&["__manual", path.to_str().unwrap()]);
        assert!(source.starts_with(".\\\""), "{name}: {source:.100}");
        Self { source }
    }

    /// Returns the literal text after the comment `example: <name>`, as a reader would copy it.
    pub fn example(&self, name: &str) -> String {
        let begin = format!(".\\\" example: {name}\n");
        let (_, rest) = self
            .source
            .split_once(&begin)
            .unwrap_or_else(|| panic!("there is no example {name}"));
        let (_, rest) = rest.split_once('\n').unwrap();
        let (text, _) = rest.split_once("\n.Ed").unwrap();
        [
            ("\\-", "-"),
            ("\\(aq", "'"),
            ("\\(ga", "`"),
            ("\\(ha", "^"),
            ("\\(ti", "~"),
            ("\\&", ""),
            ("\\e", "\\"),
        ]
        .iter()
        .fold(text.to_owned(), |text, (roff, plain)| {
            text.replace(roff, plain)
        })
    }

    /// Asserts that each subcommand in `gatewren <command> --help` has an entry.
    pub fn names_every_command(&self, command: &str) {
        let help = Command::new(env!("CARGO_BIN_EXE_gatewren"))
            .args([command, "--help"])
            .output()
            .unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let (_, rest) = help.split_once("Commands:\n").unwrap();
        let (commands, _) = rest.split_once("\n\n").unwrap();
        let commands = commands.lines().filter(|line| !line.starts_with("    "));
        let names = commands.map(|line| line.split_whitespace().next().unwrap());
        for name in names.filter(|name| *name != "help") {
            let entry = format!(".It Nm gatewren {command} {name}");
            let is_described = self.source.contains(&entry);
            assert!(is_described, "`{name}` is not in the man page");
        }
    }

    /// Asserts that each command and each setting (`[section] key`) in a literal of the page exists.
    pub fn names_what_exists(&self) {
        let settings = gatewren(&["describe", "settings"]);
        let mut commands = 0;
        for text in self.literals() {
            if let Some(words) = text.strip_prefix("gatewren ") {
                let mut words: Vec<&str> = words.split_whitespace().collect();
                words.push("--help");
                let is_known = gatewren(&words).contains("Usage: ");
                assert!(is_known, "there is no command `{text}`");
                commands += 1;
            } else if let Some(key) = text.strip_prefix('[') {
                assert!(is_setting(&settings, key), "there is no setting {text}");
            }
        }
        assert!(commands > 5, "only {commands} commands are named");
    }

    /// Returns the arguments of each `.Li` at the beginning of a line, joined.
    fn literals(&self) -> Vec<String> {
        let lines = self.source.lines();
        let lines = lines.filter(|line| !line.starts_with(".\\\""));
        let rests = lines.filter_map(|line| line.split_once("Li ").map(|(_, rest)| rest));
        rests
            .flat_map(|rest| rest.split(" , "))
            .map(|text| text.trim_end_matches([' ', ',', '.', ':', ';']))
            .map(|text| text.replace("\\-", "-"))
            .collect()
    }

    /// Asserts that mandoc or groff reports no problems.
    pub fn is_written_well(&self) {
        let checks: [&[&str]; 2] = [
            &["mandoc", "-T", "lint", "-W", "warning"],
            &["groff", "-ww", "-mdoc", "-T", "utf8", "-z"],
        ];
        let output = checks.iter().find_map(|words| {
            let mut check = Command::new(words[0]);
            check.args(&words[1..]).stdin(Stdio::piped());
            check.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut check = check.spawn().ok()?;
            let mut input = check.stdin.take().unwrap();
            input.write_all(self.source.as_bytes()).unwrap();
            drop(input);
            check.wait_with_output().ok()
        });
        let Some(output) = output else {
            return skip("there is neither mandoc nor groff");
        };
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && said.is_empty(), "{said}");
    }
}

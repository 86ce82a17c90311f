//! The architecture as a test: which room may import which, how long a file may be, where unsafe code may be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::source::rust_files;

/// The rooms, top floor first. Each may import the rooms named beside it and nothing else. `*` is every room below.
#[rustfmt::skip]
const ROOMS: &[(&str, &str)] = &[
    ("cli",           "*"),
    ("app",           "*"),
    ("fuzz",          "*"),
    ("everything",    "registry protocol"),
    ("transport",     "config dispatch guard http protocol sys vault"),
    ("bridge",        "http protocol sys"),
    ("owner",         "auth backends config deeds guard http state sys telemetry vault"),
    ("oauth",         "auth config deeds http sys vault"),
    ("deeds",         "auth config policy state sys vault"),
    ("dispatch",      "auth policy protocol registry state sys telemetry vault"),
    ("guard",         "auth config http sys"),
    ("policy",        "auth config exec registry sys vault"),
    ("toolsets",      "backends courier protocol registry state"),
    ("observer",      "backends config state"),
    ("auth",          "config vault sys"),
    ("courier",       "backends config http sys telemetry"),
    ("http",          "config sys telemetry"),
    ("registry",      "config protocol sys"),
    ("backends",      "config helper_client sys telemetry"),
    ("helper",        "config exec sys telemetry"),
    ("helper_client", "config exec sys"),
    ("exec",          "sys"),
    ("state",         "config sys telemetry"),
    ("vault",         "config sys telemetry"),
    ("telemetry",     "config sys"),
    ("protocol",      ""),
    ("config",        ""),
    ("sys",           ""),
];

const MAX_FILE_LINES: usize = 400;
const MAX_FUNCTION_LINES: usize = 60;

struct Source {
    room: String,
    path: PathBuf,
    /// The file without its tests.
    code: String,
    whole: String,
}

fn sources() -> Vec<Source> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = rust_files(&source).into_iter();
    files.map(|path| Source::read(&source, path)).collect()
}

impl Source {
    fn read(folder: &Path, path: PathBuf) -> Self {
        let whole = fs::read_to_string(&path).unwrap();
        let code = whole.split("\n#[cfg(test)]\nmod ").next().unwrap();
        let mut inside = path.strip_prefix(folder).unwrap().components();
        let first = inside.next().unwrap().as_os_str().to_string_lossy();
        let in_a_room = inside.next().is_some();
        Self {
            room: if in_a_room {
                first.into()
            } else {
                String::new()
            },
            code: code.to_owned(),
            path,
            whole,
        }
    }
}

fn floor(room: &str) -> usize {
    ROOMS
        .iter()
        .position(|(name, _)| *name == room)
        .unwrap_or_else(|| panic!("room `{room}` is not in the table"))
}

/// Returns the first path segments after `crate::` in a file.
fn imports(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for line in code.lines().filter(|l| !l.trim_start().starts_with("//")) {
        let mut rest = line;
        while let Some(at) = rest.find("crate::") {
            rest = &rest[at + "crate::".len()..];
            assert!(
                !rest.starts_with('{'),
                "one `use crate::room::…;` line per room: {line}"
            );
            let name: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            rooms.insert(name);
        }
    }
    rooms
}

#[test]
fn the_table_runs_downwards() {
    for (room, below) in ROOMS {
        for other in below.split_whitespace().filter(|o| *o != "*") {
            assert!(
                floor(other) > floor(room),
                "`{room}` may not import `{other}`, which is above it"
            );
        }
    }
}

#[test]
fn every_import_stands_in_the_table() {
    for source in sources().iter().filter(|s| !s.room.is_empty()) {
        let (_, below) = ROOMS[floor(&source.room)];
        for import in imports(&source.code) {
            let allowed = if below == "*" {
                floor(&import) > floor(&source.room)
            } else {
                below.split_whitespace().any(|room| room == import)
            };
            assert!(
                allowed,
                "{}: `{}` may not import `{import}`",
                source.path.display(),
                source.room
            );
        }
    }
}

#[test]
fn no_circle_inside_a_room() {
    let mut arrows: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for source in sources().iter().filter(|s| !s.room.is_empty()) {
        let stem = source
            .path
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if stem == "mod" {
            continue;
        }
        let folder = source.path.parent().unwrap().to_string_lossy().into_owned();
        let mut to = BTreeSet::new();
        let mut in_use = false;
        for line in source.code.lines() {
            in_use |= line.starts_with("use super::") || line.contains(" super::");
            if in_use {
                let names = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                to.extend(names.filter(|n| !n.is_empty()).map(str::to_owned));
            }
            in_use &= !line.trim_end().ends_with(';');
        }
        to.remove(&stem);
        arrows.insert((folder, stem), to);
    }
    for start in arrows.keys() {
        let mut reached = BTreeSet::new();
        let mut next = vec![start.clone()];
        while let Some(at) = next.pop() {
            for name in arrows.get(&at).into_iter().flatten() {
                let to = (start.0.clone(), name.clone());
                assert!(
                    to != *start,
                    "{}/{}.rs is in a circle through {}",
                    start.0,
                    start.1,
                    at.1
                );
                if arrows.contains_key(&to) && reached.insert(to.clone()) {
                    next.push(to);
                }
            }
        }
    }
}

#[test]
fn a_file_says_what_it_is_for_and_is_short() {
    for source in sources() {
        let path = source.path.display();
        assert!(
            source.whole.starts_with("//! "),
            "{path}: the first line says what the file is for"
        );
        let lines = source.code.lines().count();
        assert!(
            lines <= MAX_FILE_LINES,
            "{path}: {lines} lines, at most {MAX_FILE_LINES}"
        );
    }
}

#[test]
fn a_function_is_short() {
    for source in sources() {
        let mut start: Option<(usize, usize, String)> = None;
        for (number, line) in source.code.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let text = line.trim_start();
            let words = text.split('(').next().unwrap_or("");
            if start.is_none()
                && words.split_whitespace().any(|w| w == "fn")
                && !text.starts_with("//")
            {
                start = Some((number, indent, text.to_owned()));
            }
            if let Some((from, depth, name)) = &start
                && indent == *depth
                && (text.starts_with('}')
                    || text.ends_with(';')
                    || (number == *from && text.ends_with('}')))
            {
                let lines = number - from + 1;
                let path = source.path.display();
                assert!(
                    lines <= MAX_FUNCTION_LINES,
                    "{path}: `{name}` has {lines} lines"
                );
                start = None;
            }
        }
    }
}

#[test]
fn the_readme_of_the_sources_maps_every_room() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("src/README.md")).unwrap();
    for (room, below) in ROOMS {
        let face = fs::read_to_string(root.join("src").join(room).join("mod.rs")).unwrap();
        let said = face.lines().map_while(|line| line.strip_prefix("//! "));
        let said: Vec<&str> = said.collect();
        let below = match *below {
            "*" => "everything below",
            "" => "nothing",
            below => below,
        };
        let row = format!("| `{room}` | {} | {below} |", said.join(" "));
        assert!(readme.contains(&row), "src/README.md lacks: {row}");
    }
}

#[test]
fn a_face_defines_nothing() {
    for source in sources().iter().filter(|s| s.path.ends_with("mod.rs")) {
        for line in source.code.lines() {
            let word = line
                .split_whitespace()
                .find(|w| !w.starts_with("pub"))
                .unwrap_or("");
            assert!(
                ![
                    "fn", "struct", "enum", "trait", "impl", "const", "static", "type"
                ]
                .contains(&word),
                "{}: a face defines nothing: {line}",
                source.path.display()
            );
        }
    }
}

#[test]
fn only_the_policy_grants_permits() {
    for source in sources().iter().filter(|s| s.room != "policy") {
        let grants = source.code.matches("Permit::granted_by_policy").count();
        assert_eq!(
            grants,
            0,
            "{}: only the policy grants permits",
            source.path.display()
        );
    }
}

#[test]
fn danger_lives_in_sys() {
    for source in sources().iter().filter(|s| s.room != "sys") {
        for line in source
            .code
            .lines()
            .filter(|l| !l.trim_start().starts_with("//"))
        {
            let path = source.path.display();
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            assert!(
                !words.clone().any(|w| w == "nix"),
                "{path}: `nix` belongs into `sys`: {line}"
            );
            assert!(
                !words.clone().any(|w| w == "unsafe"),
                "{path}: unsafe code belongs into `sys`: {line}"
            );
        }
    }
}

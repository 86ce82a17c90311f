//! The architecture as a test: which room may import which, how long a file may be, where unsafe code may be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::source::rust_files;

/// The modules of the workspace, from the highest to the lowest: name, crate, and what each may import. `*` is every
/// module below. A crate without modules of its own in this table is one module. Cargo keeps the order of the crates;
/// this table is finer.
#[rustfmt::skip]
const MODULES: &[(&str, &str, &str)] = &[
    ("cli",           "cli",      "*"),
    ("fuzz",          "fuzz",     "*"),
    ("bridge",        "bridge",   "http_client portable protocol"),
    ("app",           "server",   "*"),
    ("transport",     "server",   "config dispatch guard http protocol sys vault"),
    ("dispatch",      "server",   "auth config policy protocol registry state sys telemetry vault"),
    ("owner",         "owner",    "auth backends config history notify observer owner_actions guard http sampler state sys telemetry tool_texts vault watches"),
    ("watches",       "tools",    "auth backends config http policy protocol registry state sys toolsets vault"),
    ("toolsets",      "tools",    "backends history notify protocol registry sampler state sys"),
    ("tool_texts",    "tools",    ""),
    ("notify",        "tools",    "backends config http owner_actions sys telemetry vault"),
    ("fixtures",      "fixtures", "registry protocol sys"),
    ("oauth",         "gate",     "auth config owner_actions http sys vault"),
    ("owner_actions", "gate",     "auth config policy state sys vault"),
    ("guard",         "gate",     "auth config http sys"),
    ("policy",        "gate",     "auth config operations registry sys vault"),
    ("auth",          "gate",     "config vault sys"),
    ("http",          "gate",     "config http_client sys telemetry"),
    ("observer",      "host",     "backends config state sys"),
    ("sampler",       "host",     "backends config history sys"),
    ("backends",      "host",     "config helper_client sys telemetry"),
    ("helper_client", "host",     "config operations sys"),
    ("helper",        "helper",   "config operations sys telemetry"),
    ("state",         "store",    "config sys telemetry"),
    ("vault",         "store",    "config sys telemetry"),
    ("history",       "store",    "sys"),
    ("registry",      "wire",     "config protocol sys"),
    ("operations",    "wire",     "config sys"),
    ("telemetry",     "base",     "config sys"),
    ("config",        "base",     "portable"),
    ("sys",           "base",     "portable"),
    ("http_client",   "http_client", "portable"),
    ("protocol",      "protocol", ""),
    ("portable",      "portable", ""),
];

const MAX_FILE_LINES: usize = 400;
const MAX_FUNCTION_LINES: usize = 60;

struct Source {
    /// Its module in the table; empty for what is in none: `main.rs` and the `lib.rs` of a crate of several modules.
    module: String,
    path: PathBuf,
    /// The file without its tests.
    code: String,
    whole: String,
}

fn sources() -> Vec<Source> {
    let source = root().join("src");
    let files = rust_files(&source).into_iter();
    files.map(|path| Source::read(&source, path)).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

impl Source {
    fn read(folder: &Path, path: PathBuf) -> Self {
        let whole = fs::read_to_string(&path).unwrap();
        let code = whole.split("\n#[cfg(test)]\nmod ").next().unwrap();
        let inside = path.strip_prefix(folder).unwrap().components();
        let names: Vec<_> = inside
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        let module = match names.as_slice() {
            [krate, ..] if is_one_module(krate) => krate.clone().into_owned(),
            [_, module, _, ..] => module.clone().into_owned(),
            _ => String::new(),
        };
        Self {
            module,
            code: code.to_owned(),
            path,
            whole,
        }
    }
}

/// Whether a crate is one module of the table.
fn is_one_module(krate: &str) -> bool {
    let mut rows = MODULES.iter();
    rows.any(|(module, of, _)| *of == krate && *module == krate)
}

fn floor(module: &str) -> usize {
    MODULES
        .iter()
        .position(|(name, ..)| *name == module)
        .unwrap_or_else(|| panic!("module `{module}` is not in the table"))
}

/// The modules of the table that a file of `module` imports: `crate::…` and `gatewren_….::…`.
fn imports(module: &str, code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in code.lines().filter(|l| !l.trim_start().starts_with("//")) {
        assert!(
            !line.contains("crate::{"),
            "one `use crate::module::…;` line per module: {line}"
        );
        let paths = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        found.extend(paths.filter_map(|path| {
            let mut parts = path
                .split("::")
                .skip_while(|part| *part != "crate" && !part.starts_with("gatewren_"));
            let krate = parts.next()?;
            let inner = parts.next()?;
            let name = krate.strip_prefix("gatewren_").unwrap_or(module);
            let name = if is_one_module(name) { name } else { inner };
            (name != module).then(|| name.to_owned())
        }));
    }
    found
}

#[test]
fn the_table_runs_downwards() {
    for (room, _, below) in MODULES {
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
    for source in sources().iter().filter(|s| !s.module.is_empty()) {
        let (_, _, below) = MODULES[floor(&source.module)];
        for import in imports(&source.module, &source.code) {
            let allowed = if below == "*" {
                floor(&import) > floor(&source.module)
            } else {
                below.split_whitespace().any(|room| room == import)
            };
            assert!(
                allowed,
                "{}: `{}` may not import `{import}`",
                source.path.display(),
                source.module
            );
        }
    }
}

/// The modules beside its own that a file imports: the first names after `super::`, also in a list.
fn siblings(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    for (at, _) in code.match_indices("super::") {
        let (before, after) = (&code[..at], &code[at + "super::".len()..]);
        if before.ends_with("super::") {
            continue;
        }
        let mut depth = 0;
        let mut starts = true;
        for (position, letter) in after.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => starts = true,
                letter if starts && letter.is_alphabetic() => {
                    let name = after[position..].split(|c: char| !c.is_alphanumeric() && c != '_');
                    found.extend(name.take(1).map(str::to_owned));
                    starts = false;
                }
                _ => {}
            }
            if depth == 0 && (letter == '}' || !starts) {
                break;
            }
        }
    }
    found
}

#[test]
fn no_circle_inside_a_module() {
    let mut arrows: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for source in sources().iter().filter(|s| !s.module.is_empty()) {
        let stem = source
            .path
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if stem == "mod" || stem == "lib" {
            continue;
        }
        let folder = source.path.parent().unwrap().to_string_lossy().into_owned();
        let mut to = siblings(&source.code);
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

/// The text up to the parenthesis that closes the one before it.
fn until_closed(text: &str) -> &str {
    let mut depth = 1;
    let end = text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    &text[..end.unwrap_or(text.len())]
}

/// Whether the parameter list of a function has a tuple, such as `(a, b): (&A, &B)` or `of: (A, B)`.
fn has_a_tuple(parameters: &str) -> bool {
    parameters.split(": ").skip(1).any(|typ| {
        let typ = typ
            .trim_start_matches(['&', ' '])
            .trim_start_matches("mut ");
        typ.strip_prefix('(')
            .is_some_and(|inside| until_closed(inside).contains(','))
    })
}

#[test]
fn parameters_have_names() {
    assert!(has_a_tuple("&self, (a, b): (&A, &B)") && has_a_tuple("of: &mut (A, B), c: C"));
    assert!(!has_a_tuple("&self, a: fn(A, B) -> C, b: &[(A, B)], c: ()"));
    let mut count = 0;
    for source in sources() {
        for function in source.code.split("fn ").skip(1) {
            let name: String = function.chars().take_while(|c| is_word(*c)).collect();
            let Some((_, parameters)) = function.split_once('(') else {
                continue;
            };
            count += 1;
            let path = source.path.display();
            assert!(
                !has_a_tuple(until_closed(parameters)),
                "{path}: `{name}` takes a tuple; use a struct or several parameters"
            );
        }
    }
    assert!(count > 5000, "only {count} functions");
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn the_readme_of_the_sources_maps_every_module() {
    let source = root().join("src");
    let readme = fs::read_to_string(source.join("README.md")).unwrap();
    for (module, krate, below) in MODULES {
        let face = if module == krate {
            source.join(krate).join("lib.rs")
        } else {
            source.join(krate).join(module).join("mod.rs")
        };
        let face = fs::read_to_string(face).unwrap();
        let about = face.lines().map_while(|line| line.strip_prefix("//! "));
        let about: Vec<&str> = about.collect();
        let below = match *below {
            "*" => "everything below",
            "" => "nothing",
            below => below,
        };
        let row = format!("| `{krate}` | `{module}` | {} | {below} |", about.join(" "));
        assert!(readme.contains(&row), "src/README.md lacks: {row}");
    }
}

#[test]
fn a_face_defines_nothing() {
    for source in sources()
        .iter()
        .filter(|s| s.path.ends_with("mod.rs") || s.path.ends_with("lib.rs"))
    {
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
    for source in sources().iter().filter(|s| s.module != "policy") {
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
    for source in sources().iter().filter(|s| s.module != "sys") {
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

#[test]
fn a_public_type_has_its_name_for_itself() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources() {
        for line in source.code.lines() {
            let words: Vec<&str> = line
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .collect();
            let kind = words
                .iter()
                .position(|word| ["struct", "enum", "trait", "type", "union"].contains(word));
            if line.starts_with("pub")
                && let Some(name) = kind.and_then(|at| words.get(at + 1))
            {
                let path = source.path.display().to_string();
                found.entry((*name).to_owned()).or_default().push(path);
            }
        }
    }
    assert!(found.len() > 1000, "only {} types", found.len());
    found.retain(|_, paths| paths.len() > 1);
    assert!(
        found.is_empty(),
        "these names are those of several types: {found:#?}"
    );
}

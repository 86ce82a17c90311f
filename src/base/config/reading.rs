//! Reads settings files: finds the files, parses the values and reports errors.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::did_you_mean::nearest;
use super::error::Problem;
use super::key::Key;

/// The maximum size of a settings file. A larger one is rejected.
const MAX_BYTES: u64 = 1 << 20;

/// The maximum number of files in `conf.d`. More are rejected.
const MAX_FRAGMENTS: usize = 64;

/// The maximum number of characters of an invalid value in an error.
const MAX_SHOWN_CHARS: usize = 60;

/// The text of a file.
pub(super) struct SettingsText {
    path: PathBuf,
    text: String,
}

/// Reads a file and each `conf.d/*.toml` in its directory, in order of precedence.
pub(super) fn with_fragments(
    path: &Path,
    may_be_missing: bool,
) -> Result<Vec<SettingsText>, Vec<Problem>> {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    match load(path, may_be_missing) {
        Ok(file) => files.extend(file),
        Err(problem) => problems.push(problem),
    }
    let folder = path.parent().unwrap_or(Path::new("")).join("conf.d");
    match list_fragments(&folder) {
        Ok(paths) => {
            for fragment in paths {
                match load(&fragment, true) {
                    Ok(file) => files.extend(file),
                    Err(problem) => problems.push(problem),
                }
            }
        }
        Err(cause) => problems.push(unreadable(&folder, &cause)),
    }
    if problems.is_empty() {
        Ok(files)
    } else {
        Err(problems)
    }
}

/// Reads one file. Returns `None` if it is missing and may be missing.
pub(super) fn load(path: &Path, may_be_missing: bool) -> Result<Option<SettingsText>, Problem> {
    match read(path) {
        Ok(text) => Ok(Some(SettingsText {
            path: path.to_owned(),
            text,
        })),
        Err(cause) if may_be_missing && cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(unreadable(path, &cause)),
    }
}

/// A family of sections with names that the owner chooses, such as `[spaces.media]`.
pub(super) struct SectionFamily<S> {
    /// The part before the dot.
    pub section: &'static str,
    /// Reads one section. Returns the errors.
    pub read: fn(&mut S, &NamedSection<'_>) -> Vec<Problem>,
}

/// One section of a family, as found in a file.
pub(super) struct NamedSection<'a> {
    file: &'a SettingsText,
    section: &'static str,
    name: &'a Spanned<std::borrow::Cow<'a, str>>,
    table: &'a DeTable<'a>,
}

impl NamedSection<'_> {
    /// Returns the name, which is the part after the dot.
    pub fn name(&self) -> &str {
        self.name.get_ref()
    }

    /// Makes an error about the section as a whole.
    pub fn problem(&self, message: String) -> Problem {
        self.file.problem(Some(self.name.span().start), message)
    }

    /// Stores each value of the section in its field. Returns the errors.
    pub fn fill<S>(&self, keys: &[Key<S>], settings: &mut S) -> Vec<Problem> {
        let called = format!("{}.{}", self.section, self.name());
        let store = |(name, value)| store_value(self.file, keys, &called, (name, value), settings);
        self.table
            .iter()
            .map(store)
            .filter_map(Result::err)
            .collect()
    }
}

/// Stores each value of a file in its field. Returns the errors.
pub(super) fn apply<S>(file: &SettingsText, keys: &[Key<S>], settings: &mut S) -> Vec<Problem> {
    apply_with(file, keys, &[], settings)
}

/// Like `apply`, with families of sections.
pub(super) fn apply_with<S>(
    file: &SettingsText,
    keys: &[Key<S>],
    families: &[SectionFamily<S>],
    settings: &mut S,
) -> Vec<Problem> {
    let document = match DeTable::parse(&file.text) {
        Ok(document) => document,
        Err(error) => {
            let at = error.span().map(|span| span.start);
            let message = format!("the file is not valid TOML: {}", error.message());
            return vec![file.problem(at, message)];
        }
    };
    let mut problems = Vec::new();
    for (name, value) in document.get_ref() {
        let family = families.iter().find(|f| f.section == name.get_ref());
        match (value.get_ref(), family) {
            (DeValue::Table(members), Some(family)) => {
                problems.extend(read_named_sections(file, family, members, settings));
            }
            (DeValue::Table(section), None) if is_section(keys, name.get_ref()) => {
                for entry in section {
                    store_value(file, keys, name.get_ref(), entry, settings)
                        .unwrap_or_else(|problem| problems.push(problem));
                }
            }
            (DeValue::Table(_), None) => {
                let message = unknown_section(keys, families, name.get_ref());
                problems.push(file.problem(Some(name.span().start), message));
            }
            (_, Some(family)) => {
                problems.push(file.problem(Some(name.span().start), family.placement_hint()));
            }
            _ => store_value(file, keys, "", (name, value), settings)
                .unwrap_or_else(|problem| problems.push(problem)),
        }
    }
    problems.sort_by_key(|problem| problem.line);
    problems
}

/// Returns the place of each key of a file: the section as written in brackets, the name and the line.
pub(super) fn places(file: &SettingsText) -> Vec<(String, String, usize)> {
    let Ok(document) = DeTable::parse(&file.text) else {
        return Vec::new();
    };
    let mut places = Vec::new();
    collect(file, "", document.get_ref(), &mut places);
    places
}

fn collect(
    file: &SettingsText,
    section: &str,
    table: &DeTable<'_>,
    places: &mut Vec<(String, String, usize)>,
) {
    for (name, value) in table {
        match value.get_ref() {
            DeValue::Table(inner) if section.is_empty() => {
                collect(file, name.get_ref(), inner, places);
            }
            DeValue::Table(inner) => {
                collect(
                    file,
                    &format!("{section}.{}", name.get_ref()),
                    inner,
                    places,
                );
            }
            _ => {
                let line = file.line(name.span().start).unwrap_or(1);
                places.push((section.to_owned(), name.get_ref().to_string(), line));
            }
        }
    }
}

impl<S> SectionFamily<S> {
    fn placement_hint(&self) -> String {
        let section = self.section;
        format!(
            "\"{section}\" is a group of sections; write a line [{section}.NAME] and the keys below it"
        )
    }
}

fn read_named_sections<S>(
    file: &SettingsText,
    family: &SectionFamily<S>,
    members: &DeTable<'_>,
    settings: &mut S,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, value) in members {
        let section = family.section;
        match value.get_ref() {
            DeValue::Table(table) => problems.extend((family.read)(
                settings,
                &NamedSection {
                    file,
                    section,
                    name,
                    table,
                },
            )),
            _ => problems.push(file.problem(Some(name.span().start), family.placement_hint())),
        }
    }
    problems
}

/// A key and its value.
type Entry<'a> = (
    &'a Spanned<std::borrow::Cow<'a, str>>,
    &'a Spanned<DeValue<'a>>,
);

/// Stores one value. `section` is the text in brackets, including a name that the owner chose.
fn store_value<S>(
    file: &SettingsText,
    keys: &[Key<S>],
    section: &str,
    (name, value): Entry<'_>,
    settings: &mut S,
) -> Result<(), Problem> {
    let known = keys
        .iter()
        .find(|key| key.is_in(section) && key.name == name.get_ref());
    let Some(key) = known else {
        let message = unknown_key(keys, section, name.get_ref());
        return Err(file.problem(Some(name.span().start), message));
    };
    (key.read)(settings, value.get_ref()).map_err(|expected| {
        let span = value.span();
        let found = shorten_typed(file.text.get(span.clone()).unwrap_or(""));
        let message = format!(
            "{} must be {expected}, but is {found}",
            key.path_in(section)
        );
        file.problem(Some(span.start), message)
    })
}

impl SettingsText {
    #[cfg(feature = "testing")]
    pub(super) fn new(path: &Path, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn problem(&self, at: Option<usize>, message: String) -> Problem {
        Problem {
            file: self.path.clone(),
            line: at.and_then(|at| self.line(at)),
            message,
        }
    }

    /// Returns the line of a byte, counted from 1.
    fn line(&self, at: usize) -> Option<usize> {
        let before = self.text.get(..at)?;
        Some(before.bytes().filter(|b| *b == b'\n').count() + 1)
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn is_section<S>(keys: &[Key<S>], name: &str) -> bool {
    !name.is_empty() && keys.iter().any(|key| key.section == name)
}

fn unknown_section<S>(keys: &[Key<S>], families: &[SectionFamily<S>], name: &str) -> String {
    let name = &*shorten_typed(name);
    if keys
        .iter()
        .any(|key| key.section.is_empty() && key.name == name)
    {
        return format!(
            "\"{name}\" is a key, not a section; write {name} = … at the head of the file"
        );
    }
    let known = keys.iter().map(|key| key.section);
    let known = known.chain(families.iter().map(|family| family.section));
    match nearest(name, known.filter(|section| !section.is_empty())) {
        Some(section) => format!("unknown section [{name}]; did you mean [{section}]?"),
        None => format!("unknown section [{name}]; remove it"),
    }
}

fn unknown_key<S>(keys: &[Key<S>], section: &str, name: &str) -> String {
    let name = &*shorten_typed(name);
    if section.is_empty() && is_section(keys, name) {
        return format!("\"{name}\" is a section; write its keys below a line [{name}]");
    }
    let section_name = |section: &str| match section {
        "" => "the head of the file".to_owned(),
        _ => format!("[{section}]"),
    };
    let here = section_name(section);
    let siblings = keys.iter().filter(|key| key.is_in(section));
    if let Some(key) = nearest(name, siblings.map(|key| key.name)) {
        return format!("unknown key \"{name}\" in {here}; did you mean \"{key}\"?");
    }
    match keys.iter().find(|key| key.name == name) {
        Some(key) => format!(
            "unknown key \"{name}\" in {here}; it belongs in {}",
            section_name(key.section)
        ),
        None => format!("unknown key \"{name}\" in {here}; remove it"),
    }
}

/// Returns a name or value as typed, shortened and on one line.
pub(super) fn shorten_typed(typed: &str) -> String {
    let mut chars = typed.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut shown: String = chars.by_ref().take(MAX_SHOWN_CHARS).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            "the file is longer than 1 MiB",
        ));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "the file is not UTF-8"))
}

fn list_fragments(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(cause),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".toml") && !name.starts_with('.') {
            paths.push(entry.path());
        }
        if paths.len() > MAX_FRAGMENTS {
            let many = format!("the directory has more than {MAX_FRAGMENTS} files");
            return Err(io::Error::new(ErrorKind::InvalidData, many));
        }
    }
    paths.sort();
    Ok(paths)
}

fn unreadable(path: &Path, cause: &io::Error) -> Problem {
    let shown = path.display();
    let message = match cause.kind() {
        ErrorKind::NotFound => {
            "the file does not exist; create it, or omit the option to use the defaults".to_owned()
        }
        ErrorKind::PermissionDenied => format!(
            "permission denied for this user; run: chgrp gatewren {shown} && chmod g+r {shown}"
        ),
        _ => format!("reading it failed: {cause}"),
    };
    Problem {
        file: path.to_owned(),
        line: None,
        message,
    }
}

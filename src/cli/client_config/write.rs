//! `gatewren client-config CLIENT --write`: edits the settings files of a client on this machine.

use std::env;
use std::path::{Path, PathBuf};

use super::json_entry::merge_json;
use super::settings_file::SettingsFile;
use super::toml_entry::merge_toml;
use gatewren_base::sys::{files, is_root, sanitize};
use gatewren_gate::owner_actions::{
    ClientFileEdit, SetupStep, Snippet, SnippetConnection, SnippetFormat, StepKind, file_edits,
};

/// What is written for a client.
pub struct WritePlan {
    files: Vec<PlannedFile>,
    /// Whether the authority's certificate is in its file, or will be.
    has_authority: bool,
}

/// A file with its new text.
struct PlannedFile {
    path: PathBuf,
    file: SettingsFile,
    /// `None` if it has what it needs.
    text: Option<String>,
    has_token: bool,
}

/// What became of a file.
pub struct WrittenFile {
    /// Its path, as the client has it.
    pub path: PathBuf,
    /// What was done, in one word.
    pub change: &'static str,
    /// The copy of the file as it was.
    pub copy: Option<PathBuf>,
    /// Whether it has the token, and others can read it.
    pub exposes_token: bool,
}

/// Returns the home directory of the user whose files are edited.
pub fn home() -> Result<PathBuf, String> {
    let caller = env::var("SUDO_USER").ok().filter(|user| user != "root");
    if let Some(user) = caller.filter(|_| is_root()) {
        return Err(format!(
            "--write edits the files of the user who runs it: run it as {}, without sudo, and give the token with \
             --token-file",
            sanitize(&user)
        ));
    }
    let home = env::var_os("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute());
    home.ok_or_else(|| {
        "--write needs the variable HOME, with the path of your home directory".to_owned()
    })
}

impl WritePlan {
    /// Reads all files of a client and edits their texts. `pem` is the authority's certificate, if this user may read
    /// it.
    pub fn new(
        client: &str,
        way: &SnippetConnection<'_>,
        home: &Path,
        pem: Option<&str>,
    ) -> Result<Self, String> {
        let edits = file_edits(client, way)?;
        let mut files = Vec::new();
        let authority = way.authority.zip(pem);
        if let Some((file, pem)) = authority {
            files.extend(plan_authority(Path::new(file), pem)?);
        }
        for edit in &edits {
            let has_token = way.token.is_some_and(|token| edit.text.contains(token));
            files.push(plan_edit(&path_of(edit, home), edit, has_token).map_err(|why| {
                format!("{why}. Nothing was changed; correct it, or take the steps of `gatewren client-config {client}`")
            })?);
        }
        let has_authority = authority.is_some();
        Ok(Self {
            files,
            has_authority,
        })
    }

    /// Writes the files.
    pub fn write(&self) -> Result<Vec<WrittenFile>, String> {
        let mut written: Vec<WrittenFile> = Vec::new();
        for planned in &self.files {
            let path = planned.path.clone();
            let copy = match &planned.text {
                Some(text) => {
                    let copy = planned.file.replace(text);
                    copy.map_err(|why| half_written(&path, &why, &written))?
                }
                None => None,
            };
            let change = match (&planned.text, planned.file.exists()) {
                (None, _) => UNCHANGED,
                (Some(_), true) => "changed",
                (Some(_), false) => "created",
            };
            let exposes_token = planned.has_token && files::may_others_read(&path).unwrap_or(true);
            written.push(WrittenFile {
                path,
                change,
                copy,
                exposes_token,
            });
        }
        Ok(written)
    }

    /// Leaves in the snippet only the steps that remain for a person.
    pub fn keep_rest(&self, snippet: &mut Snippet) {
        let check = snippet.steps.pop();
        // What follows the text to paste is another way to the same.
        let paste = snippet
            .steps
            .iter()
            .position(|step| step.kind == StepKind::Paste);
        snippet.steps.truncate(paste.unwrap_or_default());
        snippet.steps.retain(|step| match step.kind {
            StepKind::Save => !self.has_authority,
            kind => kind != StepKind::Settings,
        });
        if self.files.iter().any(|file| file.text.is_some()) {
            snippet.steps.push(SetupStep {
                kind: StepKind::Prepare,
                words: format!("Restart {} if it is running.", snippet.title),
                code: String::new(),
            });
        }
        snippet.steps.extend(check);
    }
}

/// The error for a file that could not be written after others were.
fn half_written(path: &Path, why: &str, written: &[WrittenFile]) -> String {
    let path = path.display();
    let mut all = vec![format!("{path} was not changed: {why}")];
    let before = written.iter().filter(|file| file.change != UNCHANGED);
    all.extend(
        before.map(|file| format!("{} was {} before that", file.path.display(), file.change)),
    );
    all.join("; ")
}

/// The word for a file that had everything.
pub const UNCHANGED: &str = "unchanged";

/// The path of a client's file.
fn path_of(edit: &ClientFileEdit, home: &Path) -> PathBuf {
    let named = env::var_os(edit.variable).map(PathBuf::from);
    let named = named.filter(|folder| folder.is_absolute());
    let folder = named.unwrap_or_else(|| home.join(edit.folder));
    folder.join(edit.name)
}

fn plan_edit(path: &Path, edit: &ClientFileEdit, has_token: bool) -> Result<PlannedFile, String> {
    let wrong = |why| format!("cannot edit {}: {why}", path.display());
    let file = SettingsFile::open(path).map_err(wrong)?;
    let merged = match edit.form {
        SnippetFormat::Toml => merge_toml(file.text(), &edit.text),
        _ => merge_json(file.text(), &edit.text),
    };
    Ok(PlannedFile {
        path: path.to_owned(),
        file,
        text: merged.map_err(wrong)?,
        has_token,
    })
}

/// The file of the authority's certificate, unless it has that certificate.
fn plan_authority(path: &Path, pem: &str) -> Result<Option<PlannedFile>, String> {
    let shown = path.display();
    let file = SettingsFile::open(path)
        .map_err(|why| format!("cannot save the certificate as {shown}: {why}"))?;
    if file.text().contains(pem.trim()) {
        return Ok(None);
    }
    if file.exists() {
        return Err(format!(
            "{shown} has another certificate: remove it if it is an old one of this server, or name another file with \
             --authority"
        ));
    }
    Ok(Some(PlannedFile {
        path: path.to_owned(),
        file,
        text: Some(pem.to_owned()),
        has_token: false,
    }))
}

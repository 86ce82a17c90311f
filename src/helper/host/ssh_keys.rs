//! Lists all SSH keys, and adds and removes those in gatewren's own block.

use serde::Serialize;

use gatewren_base::config::HELPER_POLICY_FILE;
use gatewren_wire::operations::{
    Fingerprint, OperationEnd, OperationRefusal, PublicKey, SshAccount, SshKey, SshKeyAction,
    SshKeyChange,
};

use super::authorized_keys::{KeyFile, run_exclusively};
use crate::context::operation_context::OperationContext;
use crate::processes::commands::require_root;
use crate::processes::printing::print;

/// The line before gatewren's keys. Only the lines between this one and the next belong to gatewren.
const BEGIN: &str = "# BEGIN gatewren: keys that were added through it";

/// The line after them.
const END: &str = "# END gatewren";

/// The most keys in the block. One more is rejected.
const MOST_KEYS: usize = 64;

/// The most keys of one file in a list.
const MOST_TOLD: usize = 256;

/// Performs one of the operations on keys.
pub async fn perform(
    context: &mut OperationContext<'_>,
    action: &SshKeyAction,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let entries = context.helper.policy.now().ssh_keys.clone();
    match action.clone() {
        SshKeyAction::List {} => print(context.relay, move || Ok(json(&list(&entries)))).await,
        SshKeyAction::Add { account, key } => {
            let entry = find_entry(&entries, account.as_deref())?;
            print(context.relay, move || {
                run_exclusively(|| add(&entry, &key)).map(|done| json(&done))
            })
            .await
        }
        SshKeyAction::Remove {
            account,
            fingerprint,
        } => {
            let entry = find_entry(&entries, account.as_deref())?;
            print(context.relay, move || {
                run_exclusively(|| remove(&entry, &fingerprint)).map(|done| json(&done))
            })
            .await
        }
    }
}

/// Returns the requested entry of the owner's list.
fn find_entry(entries: &[String], account: Option<&str>) -> Result<String, OperationRefusal> {
    let found = match (account, entries) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(account), all) => all.iter().find(|entry| *entry == account),
    };
    found.cloned().ok_or_else(|| {
        let message = format!(
            "name an account: ssh_keys in {HELPER_POLICY_FILE} allows {}; only the owner of this server can change that",
            entries.join(", ")
        );
        OperationRefusal::bad_command(message)
    })
}

fn list(entries: &[String]) -> Vec<SshAccount> {
    let accounts = entries.iter().map(|entry| {
        let nothing = |path: String, problem| SshAccount {
            account: entry.clone(),
            path,
            keys: Vec::new(),
            unreadable_lines: 0,
            problem,
        };
        match KeyFile::open(entry, false) {
            Ok(file) => {
                let (keys, unreadable_lines) = parse_keys(&file.bytes);
                SshAccount {
                    keys,
                    unreadable_lines,
                    ..nothing(file.shown, None)
                }
            }
            Err(refusal) => nothing(String::new(), Some(refusal.message.clone())),
        }
    });
    accounts.collect()
}

fn add(entry: &str, key: &PublicKey) -> Result<SshKeyChange, OperationRefusal> {
    let file = KeyFile::open(entry, true)?;
    let parts = KeyFileParts::of(&file)?;
    let fingerprint = key.fingerprint();
    let is_there =
        lines(&file.bytes).any(|line| parse_key(line).is_some_and(|k| k.1 == fingerprint));
    let done = |changed| SshKeyChange {
        account: entry.to_owned(),
        fingerprint: fingerprint.to_string(),
        changed,
    };
    // Even if the owner's own line restricts the key: a second line would not.
    if is_there {
        return Ok(done(false));
    }
    if lines(parts.block)
        .filter(|line| parse_key(line).is_some())
        .count()
        >= MOST_KEYS
    {
        let words = format!(
            "the limit of {MOST_KEYS} keys in the block of {} is reached; remove one first",
            file.shown
        );
        return Err(OperationRefusal::failed(words));
    }
    let block = [parts.block, key.to_string().as_bytes(), b"\n"].concat();
    file.replace(&parts.with_block(&block))?;
    Ok(done(true))
}

fn remove(entry: &str, fingerprint: &Fingerprint) -> Result<SshKeyChange, OperationRefusal> {
    let file = KeyFile::open(entry, false)?;
    let parts = KeyFileParts::of(&file)?;
    let is_it = |line: &[u8]| parse_key(line).is_some_and(|(_, found, _)| found == *fingerprint);
    let mut block = Vec::new();
    for line in parts.block.split_inclusive(|byte| *byte == b'\n') {
        if !is_it(line) {
            block.extend_from_slice(line);
        }
    }
    if block.len() == parts.block.len() {
        let is_foreign = lines(&file.bytes).any(is_it);
        let words = if is_foreign {
            "gatewren did not add this key; only the owner of this server can remove it"
        } else {
            "there is no such key; ssh_key_list shows those that exist"
        };
        return Err(OperationRefusal::failed(words));
    }
    file.replace(&parts.with_block(&block))?;
    Ok(SshKeyChange {
        account: entry.to_owned(),
        fingerprint: fingerprint.to_string(),
        changed: true,
    })
}

/// A file split into the part before gatewren's keys, the keys, and the part after them.
struct KeyFileParts<'a> {
    before: &'a [u8],
    block: &'a [u8],
    after: &'a [u8],
}

impl<'a> KeyFileParts<'a> {
    /// Splits a file.
    ///
    /// # Errors
    /// Fails if the marker lines are not exactly one pair: other keys could be between them.
    fn of(file: &'a KeyFile) -> Result<Self, OperationRefusal> {
        let bytes = file.bytes.as_slice();
        let mut at = 0;
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let next = at + line.len();
            match trim_line_ending(line) {
                bare if bare == BEGIN.as_bytes() => begin.push((at, next)),
                bare if bare == END.as_bytes() => end.push((at, next)),
                _ => {}
            }
            at = next;
        }
        match (begin.as_slice(), end.as_slice()) {
            ([], []) => Some(Self {
                before: bytes,
                block: &[],
                after: &[],
            }),
            ([(first, inner)], [(last, rest)]) if inner <= last => Some(Self {
                before: bytes.get(..*first).unwrap_or_default(),
                block: bytes.get(*inner..*last).unwrap_or_default(),
                after: bytes.get(*rest..).unwrap_or_default(),
            }),
            _ => None,
        }
        .ok_or_else(|| {
            OperationRefusal::failed(format!(
                "the lines \"{BEGIN}\" and \"{END}\" in {} do not form one pair; repair them first",
                file.shown
            ))
        })
    }

    /// Returns the file with this block instead of the old one. A block without keys is removed.
    fn with_block(&self, block: &[u8]) -> Vec<u8> {
        let mut bytes = self.before.to_vec();
        if !block.is_empty() {
            if bytes.last().is_some_and(|last| *last != b'\n') {
                bytes.push(b'\n');
            }
            for part in [BEGIN.as_bytes(), b"\n", block, END.as_bytes(), b"\n"] {
                bytes.extend_from_slice(part);
            }
        }
        bytes.extend_from_slice(self.after);
        bytes
    }
}

/// Returns the keys of a file, and the number of lines that are not keys.
fn parse_keys(bytes: &[u8]) -> (Vec<SshKey>, u32) {
    let (mut keys, mut unreadable, mut managed) = (Vec::new(), 0, false);
    for line in lines(bytes) {
        if trim_line_ending(line) == BEGIN.as_bytes() || trim_line_ending(line) == END.as_bytes() {
            managed = trim_line_ending(line) == BEGIN.as_bytes();
            continue;
        }
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        match parse_key(line) {
            Some((key, fingerprint, has_options)) if keys.len() < MOST_TOLD => keys.push(SshKey {
                fingerprint: fingerprint.to_string(),
                kind: key.kind().to_owned(),
                comment: key.comment().to_owned(),
                managed,
                has_options,
            }),
            _ => unreadable += 1,
        }
    }
    (keys, unreadable)
}

/// Parses the key of a line, with or without options before it (sshd(8), `AUTHORIZED_KEYS FILE FORMAT`).
fn parse_key(line: &[u8]) -> Option<(PublicKey, Fingerprint, bool)> {
    let line = std::str::from_utf8(trim_line_ending(line)).ok()?;
    if line.trim_start().starts_with('#') {
        return None;
    }
    let alone = PublicKey::of_line(line).map(|key| (key, false));
    let found = alone.or_else(|| PublicKey::of_line(strip_options(line)?).map(|key| (key, true)));
    found.map(|(key, has_options)| {
        let fingerprint = key.fingerprint();
        (key, fingerprint, has_options)
    })
}

/// Returns the text after the first blank that is not in quotes.
fn strip_options(line: &str) -> Option<&str> {
    let (mut quoted, mut escaped) = (false, false);
    let end = line.trim_start().char_indices().find(|(_, c)| {
        let is_end = !quoted && (*c == ' ' || *c == '\t');
        match c {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = *c == '\\' && !escaped;
        is_end
    });
    line.trim_start().get(end?.0..)
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}

/// A line without its line ending.
fn trim_line_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Plain numbers and strings always serialize.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

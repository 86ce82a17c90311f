//! Names of secrets: of fields, variables, headers and options, and programs' short options.

/// Words that mark a name as that of a secret, anywhere in the name.
const SECRET_WORDS: [&str; 24] = [
    "auth",
    "authorization",
    "apikey",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "key",
    "keys",
    "mnemonic",
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "psk",
    "pwd",
    "secret",
    "secrets",
    "sessionid",
    "token",
];

/// Endings of words that do the same.
const SECRET_ENDS: [&str; 7] = [
    "apikey",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "token",
];

/// The part of a name that is examined, in characters.
const MAX_NAME_CHARS: usize = 256;

/// Returns whether a field, variable, header or option of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let mut word = String::new();
    let mut was_lower = false;
    for c in name.chars().take(MAX_NAME_CHARS) {
        // `apiKey` is two words, and so is `api_key`.
        let begins = !c.is_alphanumeric() || c.is_uppercase() && was_lower;
        if begins && is_secret_word(&word) {
            return true;
        }
        if begins {
            word.clear();
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    is_secret_word(&word)
}

fn is_secret_word(word: &str) -> bool {
    SECRET_WORDS.contains(&word) || SECRET_ENDS.iter().any(|end| word.ends_with(end))
}

/// Returns whether a header of this name is secret to the end of its line: its value may have several words.
pub fn is_secret_line(name: &str) -> bool {
    [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
    ]
    .iter()
    .any(|header| name.eq_ignore_ascii_case(header))
}

/// Returns whether a word names an authentication scheme, which is followed by the secret (RFC 9110, section 11).
pub fn is_scheme(word: &str) -> bool {
    ["basic", "bearer", "digest", "negotiate", "token"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// The kind of value that a program's option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionValueKind {
    /// A secret.
    Secret,
    /// A user name, this character, and the secret.
    Behind(char),
}

/// A program with its options that take a secret but do not have the name of one.
type Options = (
    &'static [&'static str],
    &'static [(&'static str, OptionValueKind)],
);

/// Programs that are common on a home server.
const PROGRAMS: &[Options] = &[
    (
        &["curl"],
        &[
            ("-u", OptionValueKind::Behind(':')),
            ("--user", OptionValueKind::Behind(':')),
            ("-U", OptionValueKind::Behind(':')),
            ("--proxy-user", OptionValueKind::Behind(':')),
        ],
    ),
    (
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
        ],
        // Always in one word: a separate `-p` asks at the terminal.
        &[("-p", OptionValueKind::Secret)],
    ),
    (
        &["sshpass", "7z", "7za"],
        &[("-p", OptionValueKind::Secret)],
    ),
    // `docker login`: for `docker run`, `-p` is a port.
    (&["login"], &[("-p", OptionValueKind::Secret)]),
    (&["zip", "unzip"], &[("-P", OptionValueKind::Secret)]),
    (&["redis-cli"], &[("-a", OptionValueKind::Secret)]),
    (
        &["ldapsearch", "ldapmodify", "ldapadd"],
        &[("-w", OptionValueKind::Secret)],
    ),
    (
        &["smbclient", "rpcclient"],
        &[("-U", OptionValueKind::Behind('%'))],
    ),
    (&["useradd", "usermod"], &[("-p", OptionValueKind::Secret)]),
];

/// Returns the options of the program that a word names, with or without its path.
pub fn options_of(word: &str) -> Option<&'static [(&'static str, OptionValueKind)]> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let known = PROGRAMS.iter().find(|(names, _)| names.contains(&name));
    known.map(|(_, options)| *options)
}

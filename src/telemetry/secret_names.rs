//! Which names stand for secrets: of fields, variables, headers, options, and of programs' short options.

/// Words that make a name one of a secret, wherever they stand in it.
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

/// Ends of words that do the same.
const SECRET_ENDS: [&str; 7] = [
    "apikey",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "token",
];

/// The longest name that is looked at; what is longer is none.
const MAX_NAME_CHARS: usize = 256;

/// Whether a field, a variable, a header or an option of that name holds a secret.
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

/// Whether a header of that name is secret to the end of its line: its value may have several words.
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

/// Whether a word names a scheme of authentication, behind which the secret stands (RFC 9110, section 11).
pub fn is_scheme(word: &str) -> bool {
    ["basic", "bearer", "digest", "negotiate", "token"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// What the value of a program's option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A secret.
    Secret,
    /// A user's name, and behind the character the secret.
    Behind(char),
}

/// A program with its options that take a secret and have no telling name.
type Options = (&'static [&'static str], &'static [(&'static str, Value)]);

/// Those that are met on a home server.
const PROGRAMS: &[Options] = &[
    (
        &["curl"],
        &[
            ("-u", Value::Behind(':')),
            ("--user", Value::Behind(':')),
            ("-U", Value::Behind(':')),
            ("--proxy-user", Value::Behind(':')),
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
        // Always in one word: alone, `-p` asks at the terminal.
        &[("-p", Value::Secret)],
    ),
    (&["sshpass", "7z", "7za"], &[("-p", Value::Secret)]),
    // `docker login`: to `docker run`, `-p` is a port.
    (&["login"], &[("-p", Value::Secret)]),
    (&["zip", "unzip"], &[("-P", Value::Secret)]),
    (&["redis-cli"], &[("-a", Value::Secret)]),
    (
        &["ldapsearch", "ldapmodify", "ldapadd"],
        &[("-w", Value::Secret)],
    ),
    (&["smbclient", "rpcclient"], &[("-U", Value::Behind('%'))]),
    (&["useradd", "usermod"], &[("-p", Value::Secret)]),
];

/// The options of the program that a word names, by its path or alone.
pub fn options_of(word: &str) -> Option<&'static [(&'static str, Value)]> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let known = PROGRAMS.iter().find(|(names, _)| names.contains(&name));
    known.map(|(_, options)| *options)
}

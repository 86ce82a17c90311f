//! Secrets that are recognised by their shape: private keys, known token formats, passwords in URLs.

use std::borrow::Cow;

/// The replacement for a secret.
pub const GONE: &str = "[redacted]";

/// The prefixes of tokens, with the minimum number of characters that follow.
const TOKENS: [(&str, usize); 33] = [
    // Ours has 49; with some letters lost it is still mostly a token.
    ("gw_", 33),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xapp-", 16),
    ("sk-", 20),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("hf_", 20),
    ("npm_", 20),
    ("pypi-", 20),
    ("dop_v1_", 20),
    ("tskey-", 12),
    ("ya29.", 20),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("AGE-SECRET-KEY-1", 20),
    // A JSON web token: `{"` in base64.
    ("eyJ", 30),
    // Hashes of passwords, as crypt(5) and argon2 write them.
    ("$1$", 8),
    ("$2a$", 20),
    ("$2b$", 20),
    ("$2y$", 20),
    ("$5$", 8),
    ("$6$", 8),
    ("$y$", 8),
    ("$argon2", 16),
];

/// The first characters of the prefixes, so that most of a text is skipped quickly.
const BEGINS: &str = "gxsrhnpdtyAe$";

/// Returns a word without known token formats and without passwords in URLs.
pub fn without_shapes(word: &str) -> Cow<'_, str> {
    let without = without_tokens(word);
    match without_userinfo(&without) {
        Some(text) => text.into(),
        None => without,
    }
}

fn without_tokens(word: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = word;
    while let Some((at, length)) = find_token(rest) {
        out.push_str(rest.get(..at).unwrap_or_default());
        out.push_str(GONE);
        rest = rest.get(at + length..).unwrap_or_default();
    }
    if rest.len() == word.len() {
        return Cow::Borrowed(word);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the position of the first token, and its length.
fn find_token(text: &str) -> Option<(usize, usize)> {
    let mut boundary = true;
    for (at, c) in text.char_indices() {
        let rest = text.get(at..).unwrap_or_default();
        // Our own tokens are recognised anywhere, even in the middle of another word.
        if (boundary && BEGINS.contains(c) || c == 'g')
            && let Some(length) = token_length(rest, boundary)
        {
            return Some((at, length));
        }
        boundary = !c.is_ascii_alphanumeric();
    }
    None
}

fn token_length(rest: &str, boundary: bool) -> Option<usize> {
    let known = TOKENS
        .iter()
        .filter(|(begin, _)| boundary || *begin == "gw_");
    known
        .filter_map(|(begin, least)| {
            let body = rest.strip_prefix(begin)?;
            let of_hash = begin.starts_with('$');
            let length = body
                .bytes()
                .take_while(|b| {
                    b.is_ascii_alphanumeric()
                        || matches!(b, b'-' | b'_')
                        || matches!(b, b'.') && *begin != "gw_"
                        || of_hash && matches!(b, b'$' | b'/' | b'+' | b'=' | b',')
                })
                .count();
            (length >= *least).then_some(begin.len() + length)
        })
        .max()
}

/// Redacts every `scheme://user:password@host`.
fn without_userinfo(word: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        rest = after;
        let Some((userinfo, host)) = split_userinfo(after) else {
            continue;
        };
        match userinfo.split_once(':') {
            Some((user, _)) => {
                out.push_str(user);
                out.push(':');
                out.push_str(GONE);
            }
            // A token may be in the place of the user.
            None if userinfo.len() >= 20 => out.push_str(GONE),
            None => out.push_str(userinfo),
        }
        rest = host;
    }
    if out.is_empty() {
        return None;
    }
    out.push_str(rest);
    (out != word).then_some(out)
}

/// Splits an authority at its last `@`, which stays with the second part.
fn split_userinfo(after: &str) -> Option<(&str, &str)> {
    let ends = ['/', '?', '#', '"', '\'', '<', '>', '\\', ',', '`'];
    let authority = after.split(ends).next().unwrap_or_default();
    if let Some(at) = authority.rfind('@') {
        return after.split_at_checked(at);
    }
    // A password may contain such a character: then the text after the colon is not a port.
    let (_, port) = authority.split_once(':')?;
    if port.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let next = after.find("://").unwrap_or(after.len());
    let at = after.get(..next)?.find('@')?;
    after.split_at_checked(at)
}

/// Redacts from `-----BEGIN … PRIVATE KEY-----` to its end, or to the end of the text.
pub fn without_private_keys(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, key)) = around_line(rest, "-----BEGIN ") {
        out.push_str(before);
        out.push_str(GONE);
        rest = around_line(key, "-----END ").map_or("", |(_, after)| after);
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the text before and after the first PEM line with this beginning that names a private key.
fn around_line<'t>(text: &'t str, begin: &str) -> Option<(&'t str, &'t str)> {
    text.match_indices(begin).find_map(|(at, _)| {
        let label = text.get(at + begin.len()..)?;
        // Only up to the next dash, where another beginning would start: each byte is examined once.
        let (name, dashes) = label.split_at(label.find('-')?);
        let after = dashes.strip_prefix("-----")?;
        let before = text.get(..at)?;
        let private = name.ends_with("PRIVATE KEY") || name.ends_with("PRIVATE KEY BLOCK");
        private.then_some((before, after))
    })
}

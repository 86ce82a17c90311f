//! Secrets that can be told by their looks alone: private keys, tokens of known makes, passwords in URLs.

use std::borrow::Cow;

/// What stands in place of a secret.
pub const GONE: &str = "[redacted]";

/// How tokens begin, with the fewest characters that follow.
const TOKENS: [(&str, usize); 33] = [
    // Ours has 49; one with letters lost is still most of one.
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

/// What they begin with, so that most of a text is passed over quickly.
const BEGINS: &str = "gxsrhnpdtyAe$";

/// A word without tokens of known makes and without passwords in URLs.
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

/// Where the first token stands, and its length.
fn find_token(text: &str) -> Option<(usize, usize)> {
    let mut boundary = true;
    for (at, c) in text.char_indices() {
        let rest = text.get(at..).unwrap_or_default();
        // Ours is told wherever it stands, also in the middle of something else.
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

/// `scheme://user:password@host`, as often as it stands there.
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
            // A token may stand in the user's place.
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

/// What stands before the last `@` of an authority, and the `@` with what follows.
fn split_userinfo(after: &str) -> Option<(&str, &str)> {
    let ends = ['/', '?', '#', '"', '\'', '<', '>', '\\', ',', '`'];
    let authority = after.split(ends).next().unwrap_or_default();
    if let Some(at) = authority.rfind('@') {
        return after.split_at_checked(at);
    }
    // A password with such a character in it: what stands behind the colon is no port.
    let (_, port) = authority.split_once(':')?;
    if port.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let next = after.find("://").unwrap_or(after.len());
    let at = after.get(..next)?.find('@')?;
    after.split_at_checked(at)
}

/// From `-----BEGIN … PRIVATE KEY-----` to its end, or to the end of the text.
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

/// What stands before and behind the first line of PEM that begins so and names a private key.
fn around_line<'t>(text: &'t str, begin: &str) -> Option<(&'t str, &'t str)> {
    text.match_indices(begin).find_map(|(at, _)| {
        let label = text.get(at + begin.len()..)?;
        // No further than to the next dash, which a further beginning has: each byte is looked at once.
        let (name, dashes) = label.split_at(label.find('-')?);
        let after = dashes.strip_prefix("-----")?;
        let before = text.get(..at)?;
        let private = name.ends_with("PRIVATE KEY") || name.ends_with("PRIVATE KEY BLOCK");
        private.then_some((before, after))
    })
}

//! `[notify.NAME]`: a notification channel to the owner, over ntfy, a webhook, mail or Web Push.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use toml::de::DeValue;

use super::error::UnknownWord;
use super::shape::{List, Shape};
use super::watched_path::WatchedPath;

/// The maximum length of an address. A longer one is rejected.
const MAX_URL_BYTES: usize = 1024;

/// The maximum length of a topic. ntfy has the same limit.
const MAX_TOPIC_BYTES: usize = 64;

/// All channels, by name.
pub type Channels = BTreeMap<String, Channel>;

/// A channel as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The protocol.
    pub kind: ChannelKind,
    /// The address: the server for ntfy, or the complete URL for a webhook. For Web Push the owner's own push service,
    /// which may be in the local network.
    pub url: String,
    /// The topic for ntfy; empty for a webhook.
    pub topic: String,
    /// The file with the bearer token.
    pub token_file: Option<PathBuf>,
    /// The occasions on which a notification is sent without a call.
    pub on: Vec<Occasion>,
    /// The parts of the state whose changes are sent.
    pub watch: Vec<WatchedPath>,
    /// Whether agents may send to it with `notify_send`.
    pub agents: bool,
}

/// The protocol of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelKind {
    /// ntfy, publishing as JSON.
    Ntfy,
    /// A webhook, which gets one JSON object for each message.
    Webhook,
    /// Mail, which the helper sends to the recipients in `helper.toml`.
    Mail,
    /// Web Push, to each device that the owner has added on the page.
    Push,
}

/// An occasion on which a channel is notified without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// A notification of level info.
    Info,
    /// A notification of level warning.
    Warning,
    /// A notification of level error.
    Error,
    /// A change that an agent proposed and that waits for the owner.
    Inbox,
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            kind: ChannelKind::Ntfy,
            url: String::new(),
            topic: String::new(),
            token_file: None,
            on: vec![Occasion::Error, Occasion::Warning, Occasion::Inbox],
            watch: Vec::new(),
            agents: true,
        }
    }
}

impl Channel {
    /// Returns an ntfy channel that agents cannot use, or the rule that its values break.
    pub fn ntfy(url: &str, topic: &str) -> Result<Self, String> {
        let channel = Self {
            url: url.to_owned(),
            topic: topic.to_owned(),
            agents: false,
            ..Self::default()
        };
        if !is_address(url) {
            return Err("the address must have the form https://ntfy.example".to_owned());
        }
        if !is_topic(topic) {
            return Err(format!(
                "the topic must have 1 to {MAX_TOPIC_BYTES} of A-Z, a-z, 0-9, _ and -"
            ));
        }
        channel.broken_rule("ntfy").map_or(Ok(channel), Err)
    }

    /// Returns the channel for the devices, as it is without a section of the settings.
    pub fn push() -> Self {
        Self {
            kind: ChannelKind::Push,
            agents: false,
            ..Self::default()
        }
    }

    /// Returns the rule that the values break, if there is one. `section` is the section's name for the message.
    pub(super) fn broken_rule(&self, section: &str) -> Option<String> {
        if self.kind == ChannelKind::Mail {
            let is_bare = self.url.is_empty() && self.topic.is_empty() && self.token_file.is_none();
            return (!is_bare).then(|| {
                format!(
                    "{section}: a mail channel has no url, topic or token_file; remove them, and set the recipients as \
                     mail_to in helper.toml"
                )
            });
        }
        if self.kind == ChannelKind::Push {
            let is_bare = self.topic.is_empty() && self.token_file.is_none();
            let is_https = self.url.is_empty() || self.url.starts_with("https://");
            return (!(is_bare && is_https)).then(|| {
                format!(
                    "{section}: a push channel has no topic or token_file, and its url begins with https://; remove them, \
                     or set another kind"
                )
            });
        }
        if self.url.is_empty() {
            return Some(format!("{section} has no url; set it"));
        }
        match (self.kind, self.topic.is_empty()) {
            (ChannelKind::Ntfy, true) => {
                return Some(format!(
                    "{section} has no topic, but ntfy requires one; set it"
                ));
            }
            (ChannelKind::Webhook, false) => {
                let words = "a webhook has no topic; remove it, or set kind = \"ntfy\"";
                return Some(format!("{section}: {words}"));
            }
            _ => {}
        }
        let is_seen = !self.url.starts_with("https://") && !is_this_server(&self.url);
        (self.token_file.is_some() && is_seen).then(|| {
            format!(
                "{section}: a token is sent only over https:// or to this server itself, because anyone on the network \
                 can read plain http://; change url or remove token_file"
            )
        })
    }
}

/// Returns whether plain HTTP to this URL stays on this host, judging by the host in the URL.
fn is_this_server(url: &str) -> bool {
    let host = host_of(url.strip_prefix("http://").unwrap_or_default());
    ["127.0.0.1", "[::1]", "localhost"].contains(&host)
}

/// Returns the host of a URL without its scheme and port.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// A URL to send to.
pub(super) struct ChannelUrl;

impl Shape<String> for ChannelUrl {
    fn read(&self, value: &DeValue<'_>) -> Result<String, String> {
        let text = value.as_str().filter(|text| is_address(text));
        text.map(str::to_owned).ok_or_else(|| {
            "a URL in quotes, such as \"https://ntfy.example\", without a user name; plain http:// is only for \
             this server and the local network"
                .to_owned()
        })
    }

    fn write(&self, value: &String) -> String {
        toml::Value::from(value.as_str()).to_string()
    }
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://");
    let Some(rest) = rest.or_else(|| text.strip_prefix("http://")) else {
        return text.is_empty();
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_graphic() && b != b'#' && b != b'"' && b != b'\\');
    plain && text.len() <= MAX_URL_BYTES && !host_of(rest).is_empty() && !authority.contains('@')
}

/// An ntfy topic, or an empty text.
pub(super) struct Topic;

impl Shape<String> for Topic {
    fn read(&self, value: &DeValue<'_>) -> Result<String, String> {
        let text = value.as_str().filter(|text| is_topic(text));
        text.map(str::to_owned)
            .ok_or_else(|| format!("1 to {MAX_TOPIC_BYTES} of A-Z, a-z, 0-9, _ and -, in quotes"))
    }

    fn write(&self, value: &String) -> String {
        format!("\"{value}\"")
    }
}

fn is_topic(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    text.len() <= MAX_TOPIC_BYTES && text.bytes().all(fits)
}

/// The list of parts of the state to watch.
pub(super) const WATCHED: List<WatchedPath> = List {
    entry: |text| text.parse().ok(),
    like: "a path in the state, such as \"/public/packageData/*/status\", where * matches any one member",
    may_be_empty: true,
};

/// The list of occasions.
pub(super) const OCCASIONS: List<Occasion> = List {
    entry: |text| text.parse().ok(),
    like: "one of info, warning, error, inbox in quotes",
    may_be_empty: true,
};

impl fmt::Display for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ntfy => "ntfy",
            Self::Webhook => "webhook",
            Self::Mail => "mail",
            Self::Push => "push",
        })
    }
}

impl FromStr for ChannelKind {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "ntfy" => Ok(Self::Ntfy),
            "webhook" => Ok(Self::Webhook),
            "mail" => Ok(Self::Mail),
            "push" => Ok(Self::Push),
            _ => Err(UnknownWord::new(word, &["ntfy", "webhook", "mail", "push"])),
        }
    }
}

impl Occasion {
    const ALL: [Self; 4] = [Self::Info, Self::Warning, Self::Error, Self::Inbox];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Inbox => "inbox",
        }
    }
}

impl fmt::Display for Occasion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Occasion {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == word);
        found.ok_or_else(|| UnknownWord::new(word, &["info", "warning", "error", "inbox"]))
    }
}

#[cfg(test)]
mod tests {
    use super::ChannelKind::{Mail, Ntfy, Push, Webhook};
    use super::*;

    #[test]
    fn an_address_is_one_that_can_be_sent_to() {
        for good in [
            "",
            "https://ntfy.sh",
            "https://hooks.example/a/b?c=d",
            "http://192.168.1.5:8080/",
            "http://[fd00::1]:80",
        ] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "ntfy.sh",
            "ftp://x/",
            "https://",
            "https://:443/",
            "https://me:word@host/",
            "https://a b/",
            "https://host/#x",
            "https://host/\r\nX: y",
            "file:///etc/passwd",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }

    #[test]
    fn the_page_sets_an_ntfy_topic_by_the_same_rules() {
        assert!(Channel::ntfy("https://ntfy.sh", "box_1").is_ok());
        for (url, topic, words) in [
            ("ntfy.sh", "box", "https://"),
            ("", "box", "no url"),
            ("https://ntfy.sh", "", "no topic"),
            ("https://ntfy.sh", "a b", "the topic must"),
        ] {
            let rule = Channel::ntfy(url, topic).unwrap_err();
            assert!(rule.contains(words), "{rule}");
        }
    }

    #[test]
    fn a_channel_is_whole_and_its_token_is_seen_by_nobody_else() {
        let channel = |kind, url: &str, topic: &str, token: bool| Channel {
            kind,
            url: url.to_owned(),
            topic: topic.to_owned(),
            token_file: token.then(|| "/t".into()),
            ..Channel::default()
        };
        for good in [
            channel(Ntfy, "https://ntfy.sh", "box", true),
            channel(Ntfy, "http://192.168.1.5", "box", false),
            channel(Webhook, "http://127.0.0.1:99/x", "", true),
            channel(Webhook, "http://[::1]/x", "", true),
            channel(Mail, "", "", false),
            channel(Push, "", "", false),
            channel(Push, "https://push.lan:8443", "", false),
        ] {
            assert_eq!(good.broken_rule("notify.a"), None, "{good:?}");
        }
        for (bad, words) in [
            (channel(Ntfy, "", "box", false), "no url"),
            (channel(Mail, "https://x/", "", false), "mail_to"),
            (channel(Push, "http://push.lan", "", false), "https://"),
            (channel(Push, "", "box", false), "topic"),
            (channel(Ntfy, "https://ntfy.sh", "", false), "no topic"),
            (channel(Webhook, "https://x/", "box", false), "remove it"),
            (channel(Ntfy, "http://192.168.1.5", "box", true), "https://"),
            (
                channel(Webhook, "http://localhost.evil/", "", true),
                "https://",
            ),
        ] {
            let rule = bad.broken_rule("notify.a").unwrap();
            assert!(rule.contains(words), "{rule}");
        }
    }
}

//! A message to the owner, and its format for each kind of channel.

use serde_json::{Value, json};

use gatewren_base::config::{Channel, ChannelKind};
use gatewren_base::sys::{host_name, neutralise, neutralise_line, now_ms, rfc3339, shorten};
use gatewren_base::telemetry::redact_text;
use gatewren_host::backends::MailMessage;

/// The longest title, in characters; a longer one is cut.
const MAX_TITLE: usize = 160;

/// The longest text, in characters; a longer one is cut. ntfy accepts 4096 bytes.
const MAX_TEXT: usize = 1_000;

/// The longest text for Web Push: with a title it fits into one record, even if each character takes 4 bytes.
const MAX_PUSH_TEXT: usize = 500;

/// The longest part of an agent's name in front of its message.
const MAX_NAME: usize = 40;

/// How soon the owner should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// At any time.
    Low,
    /// As usual.
    Normal,
    /// Soon.
    High,
}

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageSource {
    /// The agent with this name.
    Agent(String),
    /// gatewren itself, with the name of the occasion, or `test`.
    Us(&'static str),
}

/// A message to the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerMessage {
    /// The author.
    pub source: MessageSource,
    /// A few words.
    pub title: String,
    /// A sentence or more.
    pub text: String,
    /// How soon the owner should look.
    pub priority: Priority,
    /// The container that it is about.
    pub container: Option<String>,
    /// The time of the occasion, in milliseconds since 1970.
    pub at_ms: u64,
    /// A link to a page for the owner with more details. It never contains a credential. Only gatewren's own messages
    /// have one.
    pub link: Option<String>,
}

impl Priority {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    /// ntfy's number for it. 1 and 5, which hide a message or wake people, are left for the owner to set.
    fn of_ntfy(self) -> u8 {
        match self {
            Self::Low => 2,
            Self::Normal => 3,
            Self::High => 4,
        }
    }
}

impl OwnerMessage {
    /// Creates a message with the current time.
    pub fn new(source: MessageSource, title: String, text: String, priority: Priority) -> Self {
        Self {
            source,
            title,
            text,
            priority,
            container: None,
            at_ms: now_ms(),
            link: None,
        }
    }

    /// Returns the message as mail.
    pub fn to_mail(&self) -> MailMessage {
        let name = host_name().unwrap_or_default();
        let agent = match &self.source {
            MessageSource::Agent(agent) => Some(line(agent, MAX_NAME)),
            MessageSource::Us(_) => None,
        };
        let text = shorten(&neutralise(&redact_text(&self.text)), MAX_TEXT);
        let container = self.container.as_ref();
        let container = container.map(|name| format!("\n\nContainer: {name}"));
        let link = self.link.as_ref();
        let link = link.map_or_else(String::new, |link| format!("\n\n{link}"));
        let whose = if agent.is_some() {
            "A message from an agent, sent"
        } else {
            "Sent"
        };
        let (about, at) = (container.unwrap_or_default(), rfc3339(self.at_ms));
        let text = format!("{text}{about}{link}\n\n-- \n{whose} by gatewren on {name}, {at}\n");
        MailMessage {
            subject: format!("[{name}] {}", self.shown_title()),
            text,
            agent,
        }
    }

    /// Returns the request body for a channel of another kind.
    pub fn body(&self, channel: &Channel) -> Value {
        let title = self.shown_title();
        // The text leaves the host, perhaps to a server of a third party.
        let text = shorten(&neutralise(&redact_text(&self.text)), MAX_TEXT);
        let kind = match &self.source {
            MessageSource::Agent(_) => "agent",
            MessageSource::Us(word) => word,
        };
        let name = host_name();
        let tags: Vec<&str> = [Some(kind), name.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        match channel.kind {
            // Everything that ntfy would act on (actions, attach, markdown, icon, email, call) is left out, except
            // for the link to the owner's page.
            ChannelKind::Ntfy => {
                let mut body = json!({
                    "topic": channel.topic,
                    "title": title,
                    "message": text,
                    "priority": self.priority.of_ntfy(),
                    "tags": tags,
                });
                if let (Some(link), Some(body)) = (&self.link, body.as_object_mut()) {
                    body.insert("click".to_owned(), link.as_str().into());
                }
                body
            }
            ChannelKind::Push => json!({
                "title": title,
                "body": shorten(&text, MAX_PUSH_TEXT),
                "url": self.link.as_deref().and_then(path_of),
            }),
            ChannelKind::Webhook | ChannelKind::Mail => {
                let agent = match &self.source {
                    MessageSource::Agent(agent) => Some(line(agent, MAX_NAME)),
                    MessageSource::Us(_) => None,
                };
                json!({
                    "from": "gatewren",
                    "box": name,
                    "kind": kind,
                    "agent": agent,
                    "container": self.container,
                    "priority": self.priority.as_str(),
                    "title": title,
                    "message": text,
                    "link": self.link,
                    "at": rfc3339(self.at_ms),
                })
            }
        }
    }

    /// Puts the agent's name first, so that its title cannot pass for gatewren's own, whatever it contains.
    fn shown_title(&self) -> String {
        let title = line(&self.title, MAX_TITLE);
        match &self.source {
            MessageSource::Us(_) => title,
            MessageSource::Agent(name) => {
                let who = format!("agent {}", line(name, MAX_NAME));
                if title.is_empty() {
                    who
                } else {
                    format!("{who}: {title}")
                }
            }
        }
    }
}

/// Returns the path of a URL. A browser adds the server by which its owner knows this one.
fn path_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.get(rest.find('/')?..)
}

/// Puts a text on one line, without characters that a display might interpret.
fn line(text: &str, most: usize) -> String {
    shorten(neutralise_line(&redact_text(text)).trim(), most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::push_encryption::MAX_PLAINTEXT;

    fn of_agent(name: &str, title: &str, text: &str) -> OwnerMessage {
        OwnerMessage {
            source: MessageSource::Agent(name.to_owned()),
            title: title.to_owned(),
            text: text.to_owned(),
            priority: Priority::Normal,
            container: None,
            at_ms: 0,
            link: None,
        }
    }

    fn channel(kind: ChannelKind) -> Channel {
        Channel {
            kind,
            topic: "box".to_owned(),
            ..Channel::default()
        }
    }

    #[test]
    fn what_an_agent_says_cannot_pass_for_ours_or_command_whoever_shows_it() {
        let hostile = of_agent(
            "evil\r\nX-Priority: 5",
            "a\nTopic: other\u{202e}\u{2028}b",
            "\u{1b}[2J{\"topic\":\"other\"}\r\nsecond \u{0}line",
        );
        let ntfy = hostile.body(&channel(ChannelKind::Ntfy));
        assert_eq!(ntfy["topic"], "box");
        let title = ntfy["title"].as_str().unwrap();
        assert!(
            title.starts_with("agent evil  X-Priority: 5: a Topic: other"),
            "{title}"
        );
        assert!(
            !title.contains(['\n', '\r', '\u{202e}', '\u{2028}']),
            "{title:?}"
        );
        let text = ntfy["message"].as_str().unwrap();
        assert_eq!(text, "^[[2J{\"topic\":\"other\"}\nsecond <U+0000>line");
        assert_eq!(ntfy["tags"][0], "agent");
        let keys: Vec<&String> = ntfy.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["message", "priority", "tags", "title", "topic"]);
        let hook = hostile.body(&channel(ChannelKind::Webhook));
        assert_eq!(
            (&hook["kind"], &hook["priority"]),
            (&json!("agent"), &json!("normal"))
        );
        assert_eq!(hook["at"], "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn what_is_too_long_is_cut_so_that_ntfy_takes_it() {
        let long = of_agent("a", &"t".repeat(9_000), &"\u{1f600}".repeat(9_000));
        let ntfy = long.body(&channel(ChannelKind::Ntfy));
        let text = ntfy["message"].as_str().unwrap();
        assert!(text.len() <= 4096 && text.ends_with('…'), "{}", text.len());
        assert!(ntfy["title"].as_str().unwrap().chars().count() < 220);
        assert_eq!(of_agent("a", "", "x").shown_title(), "agent a");
        let widest = of_agent(
            &"n".repeat(99),
            &"\u{1f600}".repeat(9_000),
            &"\u{1f600}".repeat(9_000),
        );
        let push = widest.body(&channel(ChannelKind::Push)).to_string();
        assert!(push.len() <= MAX_PLAINTEXT, "{}", push.len());
    }

    #[test]
    fn a_push_message_has_the_path_of_its_page_alone() {
        let mut message = of_agent("claude", "t", "x");
        let push = |message: &OwnerMessage| message.body(&channel(ChannelKind::Push));
        let expected = json!({ "title": "agent claude: t", "body": "x", "url": null });
        assert_eq!(push(&message), expected);
        message.link = Some("https://box.lan:8443/owner/changes/chg_1".to_owned());
        assert_eq!(push(&message)["url"], "/owner/changes/chg_1");
    }
}

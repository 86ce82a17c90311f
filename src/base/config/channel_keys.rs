//! `[notify.NAME]`: reads the notification channels from the settings.

use super::channel::{Channel, ChannelUrl, OCCASIONS, Topic, WATCHED};
use super::error::Problem;
use super::key::{Key, key};
use super::named::{MAX_NAME_BYTES, is_name};
use super::reading::{NamedSection, SectionFamily, shorten_typed};
use super::settings::Settings;
use super::shape::{AbsolutePath, Flag, Shape as _, Word};

/// The maximum number of channels.
const MAX_CHANNELS: usize = 8;

/// The family of sections for the reader of the settings.
pub(super) const FAMILY: SectionFamily<Settings> = SectionFamily {
    section: "notify",
    read,
};

/// Two example sections for the sample.
pub(super) const EXAMPLE: &str = "\
Channels for notifications of the owner, 8 at most, each with a name that the owner chooses.
`gatewren notify test NAME` sends a test message. The service can reach only the local network, unless its
unit is changed: gatewren(8), \"Notifications\".
kind: \"ntfy\"; \"webhook\", which gets one JSON object for each notification; \"mail\", which has no url and is
sent to the addresses of mail_to in helper.toml, with the server's own sendmail; or \"push\" for the devices that were
added on the owner's page, which get messages without a section too.
url: the server of ntfy, the full URL of a webhook, or a push service of your own. https:// needs a certificate that
this server trusts; plain http:// is allowed only to this server and to addresses of the local network.
topic: the topic of ntfy.
token_file: a file with a token, sent as Authorization: Bearer. It must belong to root or gatewren, and other users
must not be able to read it. It is sent over plain http:// only to this server itself.
on: the notifications to send: those of the levels \"info\", \"warning\" and \"error\", and \"inbox\" for changes
that agents proposed and the owner must decide.
watch: paths in the state, as `gatewren state get` shows it; each change is sent too. They are JSON Pointers below
/public, in which * matches any one member. Changes while the service was down are not sent.
agents: whether agents may send messages there, with the tool notify_send.

[notify.phone]
kind = \"ntfy\"
url = \"https://ntfy.lan\"
topic = \"box\"
token_file = \"/etc/gatewren/ntfy-token\"
on = [\"error\", \"warning\", \"inbox\"]
agents = true

[notify.hook]
kind = \"webhook\"
url = \"https://hooks.lan/gatewren\"
on = [\"error\"]
watch = [\"/public/packageData/*/status\"]
agents = false";

#[rustfmt::skip]
pub(super) const KEYS: &[Key<Channel>] = &[
    key!("notify.*", "kind",       kind,       Word,         "The protocol."),
    key!("notify.*", "url",        url,        ChannelUrl,      "The URL."),
    key!("notify.*", "topic",      topic,      Topic,        "The topic of ntfy."),
    key!("notify.*", "token_file", token_file, AbsolutePath, "The file with the token."),
    key!("notify.*", "on",         on,         OCCASIONS,    "The notifications to send."),
    key!("notify.*", "watch",      watch,      WATCHED,      "The paths in the state whose changes are sent."),
    key!("notify.*", "agents",     agents,     Flag,         "Whether agents may send messages."),
];

fn read(settings: &mut Settings, section: &NamedSection<'_>) -> Vec<Problem> {
    let name = section.name();
    if !is_name(name) {
        let name = shorten_typed(name);
        let rule = format!("the name of a channel has 1 to {MAX_NAME_BYTES} of a-z, 0-9, _ and -");
        return vec![section.problem(format!("{rule}; \"{name}\" is invalid"))];
    }
    let channels = &mut settings.notify;
    if channels.len() >= MAX_CHANNELS && !channels.contains_key(name) {
        return vec![section.problem(format!("the limit is {MAX_CHANNELS} channels"))];
    }
    section.fill(KEYS, channels.entry(name.to_owned()).or_default())
}

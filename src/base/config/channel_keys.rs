//! `[notify.NAME]`: reads the notification channels from the settings.

use super::channel::{Address, Channel, OCCASIONS, Topic, WATCHED};
use super::error::Problem;
use super::key::{Key, key};
use super::named::{MAX_NAME_BYTES, is_name};
use super::reading::{Family, Named, shown};
use super::settings::Settings;
use super::shape::{AbsolutePath, Flag, Shape as _, Word};

/// The maximum number of channels.
const MAX_CHANNELS: usize = 8;

/// The family of sections for the reader of the settings.
pub(super) const FAMILY: Family<Settings> = Family {
    section: "notify",
    read,
};

/// Two example sections for the sample.
pub(super) const EXAMPLE: &str = "\
Channels: where the owner hears of things, 8 at most. Each has a name of its owner's choosing;
`gatewren notify test NAME` sends something there. The service reaches the local network only, unless its
unit is changed: gatewren(8), \"Notifications\".
kind: \"ntfy\", \"webhook\", which is sent one JSON object for each, or \"mail\", which has no url and goes to whom
mail_to in helper.toml names, with the box's own sendmail.
url: the server of ntfy, or the whole address of a web-hook. https:// is trusted as this box trusts it; plain
http:// goes to this box and to addresses of the local network only.
topic: the topic of ntfy.
token_file: a file with a token, sent along as Authorization: Bearer; owned by root or gatewren, and read by
nobody else. Not over plain http://, but to this box itself.
on: what is sent there unasked: notifications of the levels \"info\", \"warning\" and \"error\", and \"inbox\",
what an agent proposes and waits for the owner.
watch: places of the state, as `gatewren state get` shows it, each change of which is sent there too: JSON Pointers
below /public in which * is any one member. What changed while the service was down is not told.
agents: whether agents may send there, with the tool notify_send.

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
watch = [\"/public/packageData/*/statusInfo\"]
agents = false";

#[rustfmt::skip]
pub(super) const KEYS: &[Key<Channel>] = &[
    key!("notify.*", "kind",       kind,       Word,         "What is spoken there."),
    key!("notify.*", "url",        url,        Address,      "Where it is."),
    key!("notify.*", "topic",      topic,      Topic,        "The topic of ntfy."),
    key!("notify.*", "token_file", token_file, AbsolutePath, "The file with the token."),
    key!("notify.*", "on",         on,         OCCASIONS,    "What is sent there unasked."),
    key!("notify.*", "watch",      watch,      WATCHED,      "The places of the state whose changes are sent there."),
    key!("notify.*", "agents",     agents,     Flag,         "Whether agents may send there."),
];

fn read(settings: &mut Settings, section: &Named<'_>) -> Vec<Problem> {
    let name = section.name();
    if !is_name(name) {
        let name = shown(name);
        let rule = format!("a channel is called by 1 to {MAX_NAME_BYTES} of a-z, 0-9, _ and -");
        return vec![section.problem(format!("{rule}, and not \"{name}\""))];
    }
    let channels = &mut settings.notify;
    if channels.len() >= MAX_CHANNELS && !channels.contains_key(name) {
        return vec![section.problem(format!("there are at most {MAX_CHANNELS} channels"))];
    }
    section.fill(KEYS, channels.entry(name.to_owned()).or_default())
}

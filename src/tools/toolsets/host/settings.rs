//! `server_set_*`, `server_governor`, `server_zram`: names, time zone, language, keyboard, CPU governor and swap.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolsets::failure::failed;
use gatewren_host::backends::{
    BackendError, CompressedSwap, ErrorKind, Governors, HostConfiguration, HostName, HostSetting,
    HostSettings, Keyboard, SettingWord,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset for every host.
pub fn tools(settings: Arc<HostConfiguration>) -> Toolset<HostConfiguration> {
    Toolset::new(settings)
        .with_name("server")
        .tool("server_set_hostname", Risk::Write, set_hostname)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Set the host name")
        .startos("server.set-hostname", &[("name", "pretty_name")])
        .syncs_state()
        .tool("server_set_timezone", Risk::Write, set_timezone)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Set the time zone")
        .syncs_state()
        .tool("server_set_language", Risk::Write, set_language)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Set the locale")
        .startos("server.set-language", &[])
}

/// The toolset for hosts with a keyboard.
pub fn keyboard_tools(settings: Arc<HostConfiguration>) -> Toolset<HostConfiguration> {
    Toolset::new(settings)
        .with_name("server")
        .tool("server_set_keyboard", Risk::Write, set_keyboard)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Set the keyboard layout")
        .startos("server.set-keyboard", &[])
        .ignoring_arguments(&[("keymap", "string")])
}

/// The toolset for hosts with CPU frequency scaling.
pub fn governor_tools(settings: Arc<HostConfiguration>) -> Toolset<HostConfiguration> {
    Toolset::new(settings)
        .with_name("server")
        .tool("server_governor", Risk::Write, governor)
        .also_named("server_set_governor")
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Set the CPU governor")
        .startos("server.experimental.governor", &[])
}

/// The toolset for hosts with a kernel that supports zram.
pub fn zram_tools(settings: Arc<HostConfiguration>) -> Toolset<HostConfiguration> {
    Toolset::new(settings)
        .with_name("server")
        .tool("server_zram", Risk::Write, zram)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Compressed swap")
        .startos("server.experimental.zram", &[("enable", "enabled")])
}

/// Set the host's network name, display name, or both, and return the settings. `server_info` shows it.
///
/// Running programs keep the old name until they restart; certificates and other machines are not updated. Also updates
/// `/etc/hosts`. Fails for an invalid host name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetHostname {
    /// The network name, such as `nas` or `nas.home.arpa`; unchanged if absent.
    hostname: Option<HostName>,
    /// The display name, one line, at most 128 bytes; unchanged if absent, removed if empty.
    pretty_name: Option<String>,
}

async fn set_hostname(
    settings: Arc<HostConfiguration>,
    asked: SetHostname,
    cx: Cx,
) -> Result<HostSettings> {
    if asked.hostname.is_none() && asked.pretty_name.is_none() {
        let words = "give hostname, pretty_name, or both";
        return Err(failed(BackendError::new(ErrorKind::Refused, words)));
    }
    let setting = HostSetting::Hostname {
        hostname: asked.hostname,
        pretty: asked.pretty_name,
    };
    settings.set(setting, cx.reference()).await.map_err(failed)
}

/// Set the host's time zone, and return the settings. Does not change the clock. `server_time` shows both.
///
/// Fails for an unknown zone.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetTimezone {
    /// A tz database name, such as `Europe/Vienna` or `UTC`.
    timezone: SettingWord,
}

async fn set_timezone(
    settings: Arc<HostConfiguration>,
    SetTimezone { timezone }: SetTimezone,
    cx: Cx,
) -> Result<HostSettings> {
    let setting = HostSetting::Timezone { zone: timezone };
    settings.set(setting, cx.reference()).await.map_err(failed)
}

/// Set the host's locale, generating it first if missing, and return the settings.
///
/// Running programs keep theirs until restarted: `unit_restart` or `server_restart`. Fails for an unknown locale.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetLanguage {
    /// A locale with its encoding, such as `de_AT.UTF-8`.
    language: SettingWord,
}

async fn set_language(
    settings: Arc<HostConfiguration>,
    SetLanguage { language }: SetLanguage,
    cx: Cx,
) -> Result<HostSettings> {
    let setting = HostSetting::Language { locale: language };
    settings.set(setting, cx.reference()).await.map_err(failed)
}

/// Set the host's keyboard layout, and return the settings.
///
/// The console uses it after a restart of the host (`server_restart`). Fails for an unknown layout.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetKeyboard {
    /// An XKB layout, such as `de`.
    layout: SettingWord,
    /// A variant, such as `nodeadkeys`.
    variant: Option<SettingWord>,
    /// A model, such as `pc105`; unchanged if absent.
    model: Option<SettingWord>,
    /// Options, such as `ctrl:nocaps`.
    #[serde(default)]
    options: Vec<SettingWord>,
}

async fn set_keyboard(
    settings: Arc<HostConfiguration>,
    asked: SetKeyboard,
    cx: Cx,
) -> Result<HostSettings> {
    let setting = HostSetting::Keyboard(Keyboard {
        layout: asked.layout,
        variant: asked.variant,
        model: asked.model,
        options: asked.options,
    });
    settings.set(setting, cx.reference()).await.map_err(failed)
}

/// Set the CPU frequency governor until the next boot, and return the current and the available ones; without `set`,
/// only show them. `server_metrics` shows temperatures.
///
/// Fails for an unknown governor.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Governor {
    /// A kernel governor, such as `powersave` or `performance`.
    set: Option<SettingWord>,
}

async fn governor(
    settings: Arc<HostConfiguration>,
    Governor { set }: Governor,
    cx: Cx,
) -> Result<Governors> {
    let setting = set.map(|governor| HostSetting::Governor { governor });
    let governors = settings.govern(setting, cx.reference()).await;
    governors.map_err(failed)
}

/// Turn compressed swap (zram) on or off until the next boot, and return its state; without `enabled`, only show it.
/// `server_metrics` shows memory and swap.
///
/// The device has half the memory's size. Fails if another program made it (left as it is), or if swapped-out data does
/// not fit in memory.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Zram {
    /// Turn it on or off.
    #[serde(alias = "enable")]
    enabled: Option<bool>,
}

async fn zram(
    settings: Arc<HostConfiguration>,
    Zram { enabled }: Zram,
    cx: Cx,
) -> Result<CompressedSwap> {
    let swap = settings.compress(enabled, cx.reference()).await;
    swap.map_err(failed)
}

"""A NetworkManager with a radio, for a machine that has none: python-dbusmock's (`python3 -m dbusmock --system --template
FILE`), with what gatewren needs beyond it. nmcli itself is the real one. A network lets in whoever knows `rightpass`.
"""

import configparser

import dbus
import dbusmock
from dbusmock.templates import networkmanager as base
from dbusmock.templates.networkmanager import *  # noqa: F403 (the mock looks for its methods here)

load_base = base.load
RADIO = "/org/freedesktop/NetworkManager/Devices/radio"
KEY_MGMT = {0: None, 0x100: "wpa-psk", 0x200: "wpa-eap"}
# Name, strength, frequency, and what is asked for (NM80211ApSecurityFlags).
AROUND = [
    (b"Home:Net\\5", 90, 5240, 0x100),
    (b"Home:Net\\5", 82, 2437, 0x100),
    ("Caf\u00e9 Z\u00fcrich".encode(), 61, 2462, 0x100),
    (b"--help", 55, 2412, 0),
    (b"\x1b[31mred\x07\n\x00\xff\xfe", 40, 5180, 0x100),
    (b"Office", 30, 5240, 0x200),
    (b"", 20, 2412, 0x100),
]


def load(mock, parameters):
    load_base(mock, {**parameters, "Version": "1.42.4"})
    manager = dbusmock.get_object(base.MANAGER_OBJ)
    radio = manager.AddWiFiDevice("radio", "wlan0", dbus.UInt32(base.DeviceState.DISCONNECTED))
    for number, (name, strength, frequency, security) in enumerate(AROUND):
        address = f"00:23:F8:7E:12:{number:02X}"
        path = manager.AddAccessPoint(radio, f"ap{number}", "x", address, 2, frequency, 54000, strength, security)
        dbusmock.get_object(path).UpdateProperties(base.ACCESS_POINT_IFACE, {"Ssid": dbus.Array(name, signature="y")})
    dbusmock.get_object(radio).AddProperty(base.WIRELESS_DEVICE_IFACE, "ActiveAccessPoint", dbus.ObjectPath("/"))
    manager.activate_connection = activate
    settings = dbusmock.get_object(base.SETTINGS_OBJ)
    settings.load_files = load_files
    settings.AddMethod(base.SETTINGS_IFACE, "LoadConnections", "as", "bas", "ret = self.load_files(self, args[0])")


def load_files(settings, files):
    for file in files:
        profile = configparser.RawConfigParser(comment_prefixes=("#",), delimiters=("=",))
        profile.read(file)
        ssid = bytes(int(number) for number in profile["wifi"]["ssid"].strip(";").split(";"))
        wireless = {"ssid": dbus.ByteArray(ssid), "mode": "infrastructure"}
        known = {"id": profile["connection"]["id"], "uuid": profile["connection"]["uuid"], "type": "802-11-wireless"}
        made = {"connection": known, "802-11-wireless": wireless}
        if "wifi-security" in profile:
            made["802-11-wireless-security"] = {"key-mgmt": profile["wifi-security"]["key-mgmt"]}
        for path in list(settings.ListConnections()):
            one = dbusmock.get_object(path)
            if one.settings["connection"]["uuid"] == known["uuid"]:
                one.settings = made
                one.word = profile.get("wifi-security", "psk", fallback=None)
                break
        else:
            path = settings.SettingsAddConnection(made)
            dbusmock.get_object(path).word = profile.get("wifi-security", "psk", fallback=None)
    return (True, dbus.Array([], signature="s"))


def activate(manager, profile, _device, _point):
    settings = dbusmock.get_object(profile).settings
    ssid = bytes(settings["802-11-wireless"]["ssid"])
    points = [dbusmock.get_object(path) for path in dbusmock.get_object(RADIO).access_points]
    heard = [point for point in points if bytes(point.Get(base.ACCESS_POINT_IFACE, "Ssid")) == ssid]
    for old in list(manager.Get(base.MANAGER_IFACE, "ActiveConnections")):
        manager.RemoveActiveConnection(RADIO, old)
    asks = heard and int(heard[0].Get(base.ACCESS_POINT_IFACE, "RsnFlags"))
    if not heard or asks and getattr(dbusmock.get_object(profile), "word", None) != "rightpass":
        raise dbus.exceptions.DBusException("Secrets were required, but not provided", name=base.MANAGER_IFACE + ".Failed")
    state = dbus.UInt32(base.NMActiveConnectionState.NM_ACTIVE_CONNECTION_STATE_ACTIVATED)
    activate.count = getattr(activate, "count", 0) + 1
    path = manager.AddActiveConnection([RADIO], profile, heard[0].path, f"a{activate.count}", state)
    radio = dbusmock.get_object(RADIO)
    radio.Set(base.WIRELESS_DEVICE_IFACE, "ActiveAccessPoint", dbus.ObjectPath(heard[0].path))
    radio.Set(base.DEVICE_IFACE, "State", dbus.UInt32(base.DeviceState.ACTIVATED))
    return dbus.ObjectPath(path)

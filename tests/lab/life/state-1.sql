-- The state of schema 1, written by the gatewren of commit df388c1 on a booted box, and by a program, up to revision 8.
BEGIN TRANSACTION;
CREATE TABLE meta     (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
INSERT INTO "meta" VALUES('schema','1');
INSERT INTO "meta" VALUES('database','98c59d1a-52de-48a9-a568-f4a18363599e');
CREATE TABLE revision (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, actor TEXT NOT NULL, cause TEXT,
                       patch TEXT NOT NULL CHECK (json_valid(patch))) STRICT;
INSERT INTO "revision" VALUES(1,1795351162951,'observer',NULL,'[{"op":"add","path":"/public/packageData","value":{}}]');
INSERT INTO "revision" VALUES(2,1795351162964,'observer',NULL,'[{"op":"add","path":"/public/serverInfo","value":{"containers":{"available":true}}}]');
INSERT INTO "revision" VALUES(3,1795351162977,'observer',NULL,'[{"op":"add","path":"/public/serverInfo/addresses","value":[]},{"op":"add","path":"/public/serverInfo/architecture","value":"x86_64"},{"op":"add","path":"/public/serverInfo/boot_time","value":"2026-11-21T22:56:59.000Z"},{"op":"add","path":"/public/serverInfo/cpu","value":{"cores":2,"model":"AMD EPYC"}},{"op":"add","path":"/public/serverInfo/gatewren","value":{"version":"0.1.0"}},{"op":"add","path":"/public/serverInfo/kernel","value":"6.1.0-32-amd64"},{"op":"add","path":"/public/serverInfo/memory_bytes","value":25276502016},{"op":"add","path":"/public/serverInfo/mounts","value":[{"filesystem":"overlay","path":"/","total_bytes":1073741824},{"filesystem":"ext4","path":"/gatewren","total_bytes":270553174016}]},{"op":"add","path":"/public/serverInfo/name","value":"box"},{"op":"add","path":"/public/serverInfo/os","value":{"id":"debian","name":"Debian GNU/Linux","version":"12"}},{"op":"add","path":"/public/serverInfo/reboot_required","value":false},{"op":"add","path":"/public/serverInfo/virtualization","value":"systemd-nspawn"}]');
INSERT INTO "revision" VALUES(4,1795351175953,'observer',NULL,'[{"op":"replace","path":"/public/serverInfo/containers/available","value":false},{"op":"add","path":"/public/serverInfo/containers/why","value":"the helper, which runs commands for this server, does not answer; try again in a moment, then ask the owner to look at gatewren-helper.service"}]');
INSERT INTO "revision" VALUES(5,1795351186924,'observer',NULL,'[{"op":"replace","path":"/public/serverInfo/containers/why","value":"lxc-ls is not installed; install it with: apt install lxc"}]');
INSERT INTO "revision" VALUES(6,1795351206424,'local:fixture','upgrade','[{"op":"add","path":"/public/note","value":{"written":1}}]');
INSERT INTO "revision" VALUES(7,1795351206519,'local:fixture','upgrade','[{"op":"add","path":"/public/note","value":{"written":2}}]');
INSERT INTO "revision" VALUES(8,1795351206624,'local:fixture','upgrade','[{"op":"add","path":"/public/note","value":{"written":3}}]');
CREATE TABLE snapshot (revision INTEGER PRIMARY KEY, document TEXT NOT NULL CHECK (json_valid(document))) STRICT;
INSERT INTO "snapshot" VALUES(0,'{"public":{}}');
CREATE TRIGGER revision_is_never_replaced BEFORE INSERT ON revision
WHEN EXISTS (SELECT 1 FROM revision WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a revision is never replaced'); END;
CREATE TRIGGER revision_has_the_next_id AFTER INSERT ON revision
WHEN EXISTS (SELECT 1 FROM revision WHERE id > NEW.id)
  OR NEW.id <> 1 + max(coalesce((SELECT max(id) FROM revision WHERE id < NEW.id), 0),
                       coalesce((SELECT max(revision) FROM snapshot), 0))
BEGIN SELECT RAISE(ABORT, 'the id of a revision is max(id) + 1'); END;
CREATE TRIGGER revision_is_never_updated BEFORE UPDATE ON revision
BEGIN SELECT RAISE(ABORT, 'a revision is never updated'); END;
CREATE TRIGGER snapshot_is_never_updated BEFORE UPDATE ON snapshot
BEGIN SELECT RAISE(ABORT, 'a snapshot is never updated'); END;
CREATE TRIGGER snapshot_is_of_a_revision BEFORE INSERT ON snapshot
WHEN NOT EXISTS (SELECT 1 FROM revision WHERE id = NEW.revision)
BEGIN SELECT RAISE(ABORT, 'a snapshot is of a revision that is in the log'); END;
COMMIT;
